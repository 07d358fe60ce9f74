// Which tools an agent's `tools:` list stands for: names, and globs that may stand for none.

import type { HookDefinition } from "../core/hook.ts";
import type { Tool } from "../core/tool.ts";
import { globMatcher } from "../lib/glob.ts";
import type { Catalogue } from "./catalogue.ts";

export const isPattern = (text: string) => /[*?[{]/.test(text);

/** Throws a `SyntaxError` for a broken glob. */
export function toolMatcher(text: string): (name: string) => boolean {
  return isPattern(text) ? globMatcher(text) : (name) => name === text;
}

/** Each once, in their order; of several of one name the first. */
export function chosenTools(choice: readonly string[], tools: readonly Tool[]): Tool[] {
  const matchers = choice.map(toolMatcher);
  const chosen = new Map<string, Tool>();
  for (const tool of tools)
    if (!chosen.has(tool.name) && matchers.some((matches) => matches(tool.name))) chosen.set(tool.name, tool);
  return [...chosen.values()];
}

/**
 * The tools of hooks that an agent does not get. Without a list: none. With an empty one: all. With one that names some of
 * them, by name or by glob: those that it does not name. A list of other tools only adds to them.
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

/** The names of the server's own tools and of those that hooks bring: a tenant's tool cannot take their place. */
export function reservedNames({ tools, hooks }: Pick<Catalogue, "tools" | "hooks">): ReadonlySet<string> {
  const ofHooks = hooks.flatMap(({ tools = [], fixedTools = [] }) => [...tools, ...fixedTools]);
  return new Set([...tools().map(({ name }) => name), ...ofHooks]);
}
