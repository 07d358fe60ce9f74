// Loads the plugins that a configuration file lists. A module is imported again only if one of its files has changed.

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../../agent/core/errors.ts";
import type { PluginRef } from "../../agent/core/plugin-ref.ts";
import { sentence } from "../../lib/check.ts";
import { pluginsOf } from "./check.ts";
import type { Plugin } from "./definition.ts";
import { faultOfImport } from "./fault-place.ts";
import { type ImportedModule, importFresh, isPath } from "./import.ts";

export interface LoadedPlugin {
  readonly plugin: Plugin;
  /** The location to show in messages, such as `plugins[0] ./my-hooks.ts`. */
  readonly place: string;
  /** The index of the entry in the list. */
  readonly index: number;
}

export interface PluginFault {
  /** The index of the entry in the list. */
  readonly index: number;
  /** A sentence about the entry, without the entry's name. */
  readonly message: string;
}

export interface LoadedPlugins {
  /** In the order in which the entries appear in the list. Unchanged plugins are the same objects as before. */
  readonly plugins: readonly LoadedPlugin[];
  readonly faults: readonly PluginFault[];
  /** The plugins' files, without the files of imported packages. */
  readonly files: readonly string[];
}

export interface PluginLoader {
  /** Loads the plugins that one configuration file lists. Never throws. */
  load(refs: readonly PluginRef[]): Promise<LoadedPlugins>;
}

interface LoadedModule {
  readonly fingerprint: string;
  readonly imported: ImportedModule;
}

export function createPluginLoader(): PluginLoader {
  /** The loaded modules by their entry in the list. Contains only modules that the list names. */
  let known = new Map<string, LoadedModule>();

  const obtain = async (ref: PluginRef): Promise<LoadedModule> => {
    const before = known.get(ref.module);
    // A failure may have causes outside the files, such as a service that a module calls while it loads.
    const isUsable = before && "module" in before.imported.outcome;
    if (isUsable && before.fingerprint === (await fingerprintOf(before.imported.files))) return before;
    const imported = await importFresh(ref);
    return { imported, fingerprint: await fingerprintOf(imported.files) };
  };

  return {
    async load(refs) {
      const found = new Map<string, LoadedModule>();
      const loaded: LoadedPlugins[] = [];
      // Loads one after another, because a module may rely on the effects of an earlier one.
      for (const [index, ref] of refs.entries()) {
        const each = found.get(ref.module) ?? (await obtain(ref));
        found.set(ref.module, each);
        loaded.push(loadedOf(each.imported, ref, index));
      }
      known = found;
      return {
        plugins: loaded.flatMap(({ plugins }) => plugins),
        faults: loaded.flatMap(({ faults }) => faults),
        files: [...new Set(loaded.flatMap(({ files }) => files))],
      };
    },
  };
}

function loadedOf(imported: ImportedModule, ref: PluginRef, index: number): LoadedPlugins {
  const { outcome, files } = imported;
  if ("error" in outcome)
    return { plugins: [], files, faults: [{ index, message: reasonOf(outcome.error, imported, ref) }] };
  const checked = pluginsOf(outcome.module);
  if ("faults" in checked) {
    const faults = checked.faults.map((fault) => ({ index, message: `${ref.module}: ${sentence(fault)}` }));
    return { plugins: [], files, faults };
  }
  const place = `${ref.place} ${ref.module}`;
  return { files, faults: [], plugins: checked.plugins.map((plugin) => ({ plugin, place, index })) };
}

function reasonOf(error: unknown, imported: ImportedModule, { module, folder }: PluginRef): string {
  const isOwn = imported.files.length > 0 && existsSync(imported.files[0] ?? "");
  if (isOwn) return faultOfImport(error, imported, folder);
  if (isPath(module)) return `there is no file \`${module}\` in ${folder}`;
  if (!isMissing(error)) return `\`${module}\`: ${messageOf(error).split("\n")[0]}`;
  const isFile = existsSync(join(folder, module)) || /\.[cm]?[jt]s$/.test(module);
  const meant = isFile ? `; for the file write \`./${module}\`` : "";
  return `cannot find the package \`${module}\` from ${folder}${meant || "; install it there"}`;
}

const isMissing = (error: unknown) =>
  error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND";

async function fingerprintOf(files: readonly string[]): Promise<string> {
  const hash = createHash("sha256");
  for (const file of files) {
    const content = await readFile(file).catch(() => undefined);
    hash.update(`${file}\n${content?.length ?? "missing"}\n`).update(content ?? "");
  }
  return hash.digest("hex");
}
