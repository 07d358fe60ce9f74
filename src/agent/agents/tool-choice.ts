// Selects tools by the names and globs in an agent's `tools:` list.

import { globMatcher } from "../../lib/glob.ts";
import type { HookDefinition } from "../core/hook.ts";
import type { Tool } from "../core/tool.ts";
import type { Catalogue } from "./catalogue.ts";

export const isPattern = (text: string) => /[*?[{]/.test(text);

/** Compiles a name or glob. Throws a `SyntaxError` for an invalid glob. */
export function toolMatcher(text: string): (name: string) => boolean {
  return isPattern(text) ? globMatcher(text) : (name) => name === text;
}

/** True if the list contains a name or a glob that could match a tool of the MCP server. */
export function namesServer(choice: readonly string[], server: string): boolean {
  const prefix = `mcp__${server}__`;
  return choice.some((text) => {
    const [start = ""] = text.split(/[*?[{]/, 1);
    return start.startsWith(prefix) || (isPattern(text) && prefix.startsWith(start));
  });
}

/**
 * Returns the chosen tools in the order of `tools`. If several tools have the same name, only the first one
 * is included.
 */
export function chosenTools(choice: readonly string[], tools: readonly Tool[]): Tool[] {
  const matchers = choice.map((text) => ({ matches: toolMatcher(text), isBroad: /^[*?[{]/.test(text) }));
  const isChosen = ({ name, annotations: { namedOnly = false } }: Tool) =>
    matchers.some(({ matches, isBroad }) => !(namedOnly && isBroad) && matches(name));
  const chosen = new Map<string, Tool>();
  for (const tool of tools) if (!chosen.has(tool.name) && isChosen(tool)) chosen.set(tool.name, tool);
  return [...chosen.values()];
}

/**
 * Returns the hooks' tools that an agent does not receive. Without a list, it receives all of them. With an
 * empty list, it receives none. If the list matches some of these tools, the agent receives only those. If
 * the list matches none of these tools, the agent receives all of them in addition to the listed tools.
 */
export function leftOut(
  choice: readonly string[] | undefined,
  hooks: readonly HookDefinition[],
): ReadonlySet<string> {
  if (choice === undefined) return new Set();
  const matchers = choice.map(toolMatcher);
  const names = hooks.flatMap(({ tools = [] }) => tools);
  const others = names.filter((name) => !matchers.some((matches) => matches(name)));
  const chooses = choice.length === 0 || others.length < names.length;
  return new Set(chooses ? others : []);
}

type Offer = Pick<Catalogue, "tools" | "hooks">;

/** Returns the names of the tools of the server and its hooks. Tenants' tools cannot use these names. */
export const reservedNames = (offer: Offer): ReadonlySet<string> => new Set(namesIn(offer));

/** True if `name` is one of the reserved names. */
export const isReserved = (name: string, offer: Offer): boolean =>
  namesIn(offer).some((each) => each === name);

function* namesIn({ tools, hooks }: Offer): Generator<string, void, void> {
  for (const { name } of tools()) yield name;
  for (const { tools = [], fixedTools = [] } of hooks) {
    yield* tools;
    yield* fixedTools;
  }
}

/**
 * Returns the setting in server.yaml that the server needs for a built-in tool, or undefined for other names.
 */
export const settingOf = (name: string): string | undefined =>
  name === "web_search" ? "web.search" : undefined;
