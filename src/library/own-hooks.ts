// A program's own hooks among those that Skein has.

import { z } from "zod";
import { AppError } from "../core/errors.ts";
import { defineHook, type Hook, type HookDefinition, type HookServices } from "../core/hook.ts";
import { hooks } from "../hooks/index.ts";
import { didYouMean } from "../lib/did-you-mean.ts";

/** Called for each run: its closure is that run's own. */
export type HookFactory = (services: HookServices) => Hook;

export type OwnHook =
  | HookFactory
  | HookDefinition
  /** In the list of hooks directly before (outside of) or after (inside of) the one of that name. */
  | { readonly hook: HookFactory | HookDefinition; readonly before: string }
  | { readonly hook: HookFactory | HookDefinition; readonly after: string };

/** All hooks there are for an agent, in order. Throws `config_invalid`. */
export function arranged(own: readonly OwnHook[]): HookDefinition[] {
  const list = [...hooks];
  const outside: HookDefinition[] = [];
  for (const [index, each] of own.entries()) {
    const definition = asDefinition("hook" in each ? each.hook : each, `own#${index + 1}`);
    if ([...list, ...outside].some(({ name }) => name === definition.name))
      throw new AppError("config_invalid", `hooks: there is a hook \`${definition.name}\` already.`);
    if ("hook" in each) list.splice(placeOf(each, list), 0, definition);
    else outside.push(definition);
  }
  return [...outside, ...list];
}

function placeOf(own: { before: string } | { after: string }, list: readonly HookDefinition[]): number {
  const name = "before" in own ? own.before : own.after;
  const place = list.findIndex((hook) => hook.name === name);
  if (place !== -1) return "before" in own ? place : place + 1;
  const names = list.map((hook) => hook.name);
  throw new AppError("config_invalid", `hooks: there is no hook \`${name}\`${didYouMean(name, names)}`);
}

/** A factory has no name that settings could use. */
function asDefinition(hook: HookFactory | HookDefinition, name: string): HookDefinition {
  if (typeof hook !== "function") return hook;
  return defineHook({
    name,
    options: z.object({}),
    activeByDefault: () => true,
    create: (_options, services) => hook(services),
  });
}
