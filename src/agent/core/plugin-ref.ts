// The entries that name plugins in configuration files.

import { dirname, resolve } from "node:path";
import { z } from "zod";

/** A file, relative to the configuration file, or an installed package. */
export const PluginModule = z.string().trim().min(1).max(1024);

/**
 * The maximum number of plugins. Every plugin is imported, watched and searched for names, so a longer list
 * is a mistake.
 */
export const MAX_PLUGINS = 64;

export const PluginList = z
  .array(PluginModule)
  .max(MAX_PLUGINS)
  .describe("Plugins: paths relative to this file, such as `./my-hooks.ts`, or installed packages.");

/** One entry in a list of plugins. */
export interface PluginRef {
  readonly module: string;
  /** The folder from which relative paths and packages are resolved. */
  readonly folder: string;
  /** The position of the entry, such as `plugins[0]`, for use in messages. */
  readonly place: string;
}

export function pluginRefs(modules: readonly string[], configFile: string): PluginRef[] {
  const folder = dirname(resolve(configFile));
  return modules.map((module, index) => ({ module, folder, place: `plugins[${index}]` }));
}
