// Selects tools by the names and globs in an agent's `tools:` list.

import { globMatcher } from "../../lib/glob.ts";
import type { HookDefinition } from "../core/hook.ts";
import type { Tool } from "../core/tool.ts";
import type { Catalogue } from "./catalogue.ts";

export const isPattern = (text: string) => /[*?[{]/.test(text);

/** Throws a `SyntaxError` for an invalid glob. */
export function toolMatcher(text: string): (name: string) => boolean {
  return isPattern(text) ? globMatcher(text) : (name) => name === text;
}

/** True if the list contains a name or a glob that tools of an MCP server could match. */
export function namesServer(choice: readonly string[], server: string): boolean {
  const prefix = `mcp__${server}__`;
  return choice.some((text) => {
    const [start = ""] = text.split(/[*?[{]/, 1);
    return start.startsWith(prefix) || (isPattern(text) && prefix.startsWith(start));
  });
}

/** In the order of `tools`. Contains the first of several tools with the same name. */
export function chosenTools(choice: readonly string[], tools: readonly Tool[]): Tool[] {
  const matchers = choice.map((text) => ({ matches: toolMatcher(text), isBroad: /^[*?[{]/.test(text) }));
  const isChosen = ({ name, annotations: { namedOnly = false } }: Tool) =>
    matchers.some(({ matches, isBroad }) => !(namedOnly && isBroad) && matches(name));
  const chosen = new Map<string, Tool>();
  for (const tool of tools) if (!chosen.has(tool.name) && isChosen(tool)) chosen.set(tool.name, tool);
  return [...chosen.values()];
}

/**
 * The tools of hooks that an agent does not get. Without a list: none. With an empty list: all. With a list
 * that matches some of them: all others. A list that matches none of them only adds tools.
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

/** The names of the tools of the server and of hooks. Tools of tenants cannot use them. */
export const reservedNames = (offer: Offer): ReadonlySet<string> => new Set(namesIn(offer));

/** True if `name` is one of these. */
export const isReserved = (name: string, offer: Offer): boolean =>
  namesIn(offer).some((each) => each === name);

function* namesIn({ tools, hooks }: Offer): Generator<string, void, void> {
  for (const { name } of tools()) yield name;
  for (const { tools = [], fixedTools = [] } of hooks) {
    yield* tools;
    yield* fixedTools;
  }
}

/** The setting of server.yaml without which the server lacks a built-in tool. Undefined for other names. */
export const settingOf = (name: string): string | undefined =>
  name === "web_search" ? "web.search" : undefined;
