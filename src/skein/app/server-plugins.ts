// The plugins in server.yaml, and the plugins that a program passes as objects. They are loaded once and checked
// against each other.

import { AppError } from "../../agent/core/errors.ts";
import type { PluginRef } from "../../agent/core/plugin-ref.ts";
import { hooks } from "../../agent/hooks/index.ts";
import { sentence } from "../../lib/check.ts";
import { pluginsOf } from "../../server/plugins/check.ts";
import type { Plugin } from "../../server/plugins/definition.ts";
import type { LoadedPlugin, PluginFault, PluginLoader } from "../../server/plugins/load.ts";
import { collisions, hooksOf, type Names } from "../../server/plugins/names.ts";

export interface ServerPlugins {
  readonly plugins: readonly LoadedPlugin[];
  /** The files whose changes require a restart. */
  readonly files: readonly string[];
  /** `taken` and the names that the plugins add. */
  readonly names: Names;
}

/** Throws `config_invalid` with all problems, one per line. `source` is the settings file, for messages. */
export async function loadServerPlugins(
  loader: PluginLoader,
  refs: readonly PluginRef[],
  objects: readonly Plugin[],
  taken: Names,
): Promise<ServerPlugins> {
  const loaded = await loader.load(refs);
  const given = objects.map((plugin, at) => ofProgram(plugin, refs.length + at));
  const plugins = [...loaded.plugins, ...given.flatMap((each) => ("plugin" in each ? [each] : []))];
  const { faults, names } = collisions(plugins, taken);
  const wrong = [
    ...loaded.faults,
    ...given.flatMap((each) => ("message" in each ? [each] : [])),
    ...faults,
    ...hooksOf(plugins, hooks).faults,
  ];
  const placeOf = (index: number) => refs[index]?.place ?? `plugins[${index}]`;
  if (wrong.length > 0)
    throw new AppError(
      "config_invalid",
      wrong.map(({ index, message }) => `${placeOf(index)}: ${message}`).join("\n"),
    );
  return { plugins, files: loaded.files, names };
}

/**
 * Refuses plugins with parts for agents. Used for a server of a program's agents, which already have their parts.
 * Throws `config_invalid`.
 */
export function refuseAgentParts(plugins: readonly LoadedPlugin[]): void {
  const wrong = plugins.flatMap(({ plugin, place }) =>
    (["hooks", "tools", "models"] as const)
      .filter((part) => plugin[part] !== undefined)
      .map(
        (part) => `${place}: plugin \`${plugin.name}\` has \`${part}\`; pass them to \`createAgent\` instead`,
      ),
  );
  if (wrong.length > 0) throw new AppError("config_invalid", wrong.join("\n"));
}

function ofProgram(plugin: Plugin, index: number): LoadedPlugin | PluginFault {
  const checked = pluginsOf({ default: plugin });
  if ("plugins" in checked) return { plugin, index, place: `plugins[${index}]` };
  return { index, message: checked.faults.map((fault) => sentence(fault)).join("; ") };
}
