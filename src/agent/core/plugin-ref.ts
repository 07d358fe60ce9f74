// Plugins as configuration files name them.

import { dirname, resolve } from "node:path";
import { z } from "zod";

/** A file, relative to the configuration file, or an installed package. */
export const PluginModule = z.string().trim().min(1).max(1024);

/** More are a mistake: each is imported, watched and searched for names. */
export const MAX_PLUGINS = 64;

export const PluginList = z
  .array(PluginModule)
  .max(MAX_PLUGINS)
  .describe("Plugins: paths relative to this file, such as `./my-hooks.ts`, or installed packages.");

/** One entry of such a list. */
export interface PluginRef {
  readonly module: string;
  /** What a relative path is relative to, and where packages are looked up from. */
  readonly folder: string;
  /** For messages: `plugins[0]`. */
  readonly place: string;
}

export function pluginRefs(modules: readonly string[], configFile: string): PluginRef[] {
  const folder = dirname(resolve(configFile));
  return modules.map((module, index) => ({ module, folder, place: `plugins[${index}]` }));
}
