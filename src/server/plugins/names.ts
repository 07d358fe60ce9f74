// The names that plugins add, which must be unique, and the order of their hooks.

import { messageOf } from "../../agent/core/errors.ts";
import type { HookDefinition } from "../../agent/core/hook.ts";
import { arrangeHooks, definitionOf, type PlacedHook } from "../../agent/core/hook-order.ts";
import type { LoadedPlugin, PluginFault } from "./load.ts";

/** The owner of each name, by kind and name, such as "tool `ls`". */
export type Names = ReadonlyMap<string, string>;

/** Returns a fault for each name that is in `taken` or in an earlier plugin, and all names including the new ones. */
export function collisions(
  plugins: readonly LoadedPlugin[],
  taken: Names,
): { readonly faults: readonly PluginFault[]; readonly names: Names } {
  const names = new Map(taken);
  const faults = plugins.flatMap((loaded) =>
    namesOf(loaded).flatMap((name) => {
      const owner = names.get(name);
      if (owner === undefined) names.set(name, loaded.place);
      return owner === undefined ? [] : [{ index: loaded.index, message: alreadyIn(name, owner, loaded) }];
    }),
  );
  return { faults, names };
}

const TASK_BOARD = "the task board";

function alreadyIn(name: string, owner: string, { plugin, place }: LoadedPlugin): string {
  const where =
    owner === place ? "is there twice" : owner === "Skein" ? "is built in" : `is already in ${owner}`;
  return `plugin \`${plugin.name}\`: ${name} ${where}; ${name === TASK_BOARD ? "keep one of them" : "rename it"}`;
}

function namesOf({ plugin }: LoadedPlugin): string[] {
  const { hooks = [], tools = [], models = {}, backends = {}, auth, tasks } = plugin;
  const definitions = hooks.map(definitionOf);
  const ofHooks = definitions.flatMap((hook) => [...(hook.tools ?? []), ...(hook.fixedTools ?? [])]);
  return [
    `plugin \`${plugin.name}\``,
    ...definitions.map(({ name }) => `hook \`${name}\``),
    ...[...tools.map(({ name }) => name), ...ofHooks].map((name) => `tool \`${name}\``),
    ...Object.keys(models).map((name) => `model provider \`${name}\``),
    ...Object.keys(backends).map((name) => `backend type \`${name}\``),
    ...(tasks ? [TASK_BOARD] : []),
    ...(auth ? [`authentication scheme \`${auth.name}\``] : []),
  ];
}

/**
 * Returns all hooks, outermost first: the first plugin's hooks, then the second plugin's, and so on, then the built-in
 * ones. Each name occurs once.
 */
export function hooksOf(
  plugins: readonly LoadedPlugin[],
  builtIn: readonly HookDefinition[],
): { readonly hooks: readonly HookDefinition[]; readonly faults: readonly PluginFault[] } {
  let hooks: readonly HookDefinition[] = builtIn;
  const faults: PluginFault[] = [];
  // Works from the inside out, so a hook can be placed next to a hook of a later plugin.
  for (const { plugin, index } of plugins.toReversed()) {
    const isNew = (each: PlacedHook) => !hooks.some(({ name }) => name === definitionOf(each).name);
    try {
      hooks = arrangeHooks((plugin.hooks ?? []).filter(isNew), hooks);
    } catch (error) {
      faults.push({ index, message: `plugin \`${plugin.name}\`: ${messageOf(error)}` });
    }
  }
  return { hooks, faults };
}
