// Which tools an agent's `tools:` list stands for: names, and globs that may stand for none.

import type { Tool } from "../core/tool.ts";
import { globMatcher } from "../lib/glob.ts";

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
