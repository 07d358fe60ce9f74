// Imports a plugin's module as a fresh copy each time. A version is appended to its URL and to the URLs of the files
// that it imports by relative paths. All versions share packages, and `skein` is the running program itself.

import { registerHooks } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { PluginRef } from "../../agent/core/plugin-ref.ts";
import { moduleUrl } from "../../lib/paths.ts";

/** A module, or the reason for a failed import, and all files that its import depends on. */
export interface ImportedModule {
  readonly outcome: { readonly module: object } | { readonly error: unknown };
  /** Absolute paths, starting with the module's own. */
  readonly files: readonly string[];
  /** The import that could not be resolved, if it is the reason for the failure. */
  readonly unresolved?: { readonly file: string; readonly specifier: string } | undefined;
}

interface ImportRecord {
  readonly ref: PluginRef;
  readonly files: Set<string>;
  unresolved?: { readonly file: string; readonly specifier: string };
}

const ENTRY = "skein-plugin:";
const VERSION = "skein-plugin";
/** Maps `skein` to the running program, so a plugin uses the error classes and keys of this copy. */
const SKEIN = new Map([
  ["skein", moduleUrl("index")],
  ["skein/adapters", moduleUrl("skein/adapters/index")],
]);

const records = new Map<string, ImportRecord>();
let isHooked = false;
let versions = 0;

/** The maximum time for a module to load, in ms. A top-level `await` may never end. */
const PATIENCE_MS = 60_000;

/** True if this process has imported a plugin. */
export const hasImported = () => isHooked;

/** Never throws. Modules of earlier versions stay in memory, because Node cannot unload them. */
export async function importFresh(ref: PluginRef): Promise<ImportedModule> {
  if (!isHooked) registerHooks({ resolve: (specifier, context, next) => resolve(specifier, context, next) });
  isHooked = true;
  const version = String(++versions);
  const record: ImportRecord = { ref, files: new Set() };
  records.set(version, record);
  const outcome = await inTime(import(`${ENTRY}${version}`)).then(
    (module: object) => ({ module }),
    (error: unknown) => ({ error }),
  );
  const { files, unresolved } = record;
  // A path without a file is watched as well, so a new file is found.
  if (files.size === 0 && isPath(ref.module)) files.add(join(ref.folder, ref.module));
  return { outcome, files: [...files], unresolved };
}

export const isPath = (module: string) => /^(?:\.{0,2}\/|[a-z]:\\)/i.test(module);

function resolve<C extends { parentURL?: string | undefined }, R extends { url: string }>(
  specifier: string,
  context: C,
  next: (specifier: string, context: C) => R,
): R {
  if (specifier.startsWith(ENTRY)) {
    const version = specifier.slice(ENTRY.length);
    const { module, folder } = records.get(version)?.ref ?? { module: specifier, folder: "." };
    // Resolves as if a file in the folder imported it.
    const parentURL = pathToFileURL(join(folder, "plugins")).href;
    return versioned(next(module, { ...context, parentURL }), version);
  }
  const version = versionOf(context.parentURL);
  if (version === undefined) return next(specifier, context);
  const own = SKEIN.get(specifier);
  if (own !== undefined) return next(own, context);
  try {
    const found = next(specifier, context);
    return isPath(specifier) ? versioned(found, version) : found;
  } catch (error) {
    const record = records.get(version);
    const file = fileOf(context.parentURL ?? "");
    if (record) record.unresolved ??= { file, specifier };
    if (isPath(specifier)) record?.files.add(join(dirname(file), specifier));
    throw error;
  }
}

function versioned<R extends { url: string }>(found: R, version: string): R {
  if (!found.url.startsWith("file:")) return found;
  records.get(version)?.files.add(fileOf(found.url));
  const url = new URL(found.url);
  url.searchParams.set(VERSION, version);
  return { ...found, url: url.href };
}

function versionOf(url = ""): string | undefined {
  return url.includes(`${VERSION}=`) ? (URL.parse(url)?.searchParams.get(VERSION) ?? undefined) : undefined;
}

/** Returns the path of the file, without the version. */
function fileOf(url: string): string {
  const bare = new URL(url);
  bare.search = "";
  return fileURLToPath(bare);
}

function inTime<T>(work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const late = () => reject(new Error(`the module did not finish loading within ${PATIENCE_MS / 1000} s`));
  const timer = setTimeout(late, PATIENCE_MS);
  return Promise.race([work, promise]).finally(() => clearTimeout(timer));
}
