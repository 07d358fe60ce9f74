// Arranges a program's own hooks among the built-in ones, whose order is the list in hooks/index.ts.

import { didYouMean } from "../../lib/did-you-mean.ts";
import { AppError } from "./errors.ts";
import type { HookDefinition } from "./hook.ts";

/**
 * A hook placed directly before (outside) or after (inside) the named hook. A hook without a position is
 * placed outside all built-in hooks.
 */
export type PlacedHook<H = HookDefinition> =
  | H
  | { readonly hook: H; readonly before: string }
  | { readonly hook: H; readonly after: string };

/**
 * Inserts the hooks of `own` among the `builtIn` ones, outermost first. Throws `config_invalid` for a duplicate name or an
 * unknown neighbor.
 */
export function arrangeHooks(
  own: readonly PlacedHook[],
  builtIn: readonly HookDefinition[],
): HookDefinition[] {
  const list = [...builtIn];
  const outside: HookDefinition[] = [];
  for (const each of own) {
    const definition = definitionOf(each);
    if ([...list, ...outside].some(({ name }) => name === definition.name))
      throw new AppError("config_invalid", `hooks: \`${definition.name}\` already exists.`);
    if ("hook" in each) list.splice(placeOf(each, list), 0, definition);
    else outside.push(definition);
  }
  return [...outside, ...list];
}

export const definitionOf = (hook: PlacedHook): HookDefinition => ("hook" in hook ? hook.hook : hook);

function placeOf(own: { before: string } | { after: string }, list: readonly HookDefinition[]): number {
  const name = "before" in own ? own.before : own.after;
  const place = list.findIndex((hook) => hook.name === name);
  if (place !== -1) return "before" in own ? place : place + 1;
  const names = list.map((hook) => hook.name);
  throw new AppError("config_invalid", `hooks: there is no hook \`${name}\`${didYouMean(name, names)}`);
}
