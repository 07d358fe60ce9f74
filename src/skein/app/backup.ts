// Backups of a data folder. Databases are copied before files, so no thread refers to a missing file. The backup's
// folder gets its final name once everything is on disk.

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import packageJson from "../../../package.json" with { type: "json" };
import { AppError } from "../../agent/core/errors.ts";
import { copySmallFile } from "../../engine/stores/sqlite/copies.ts";

const Manifest = z.object({
  format: z.literal(1),
  version: z.string(),
  at: z.string(),
  files: z.array(z.object({ path: z.string(), bytes: z.int(), sha256: z.string() })),
});
export type Manifest = z.infer<typeof Manifest>;

const MANIFEST = "manifest.json";
/** The folders to copy in addition to the databases. */
const FOLDERS = ["workspaces", "volumes", "deployment"];

/** Copies the main database through the connection that has locked it. */
export type CopyDatabase = (to: string) => Promise<void>;

export interface Backup {
  readonly path: string;
  readonly files: number;
  readonly bytes: number;
  /**
   * The number of sandboxes whose files are in volumes of Docker engines instead of the data folder. These files are
   * not part of the backup.
   */
  readonly workspaces_left_out: number;
}

/**
 * Writes a backup to `backups/<time>` in the data folder. `sandboxes` lists the ids of all sandboxes. Throws
 * `invalid_request` for a store without files.
 */
export async function backUpData(
  dataDir: string,
  copy: CopyDatabase,
  sandboxes: () => Promise<readonly string[]>,
): Promise<Backup> {
  const at = new Date().toISOString();
  const all = join(dataDir, "backups");
  const path = join(all, at.replaceAll(":", "-"));
  const part = `${path}.part`;
  await mkdir(part, { recursive: true, mode: 0o700 });
  try {
    await copy(join(part, "skein.db"));
    for (const name of ["usage.db", "keys.db"]) await copySmallFile(join(dataDir, name), join(part, name));
    for (const name of FOLDERS) await copyTree(join(dataDir, name), join(part, name));
    const files = await filesOf(part);
    const manifest: Manifest = { format: 1, version: packageJson.version, at, files };
    await writeFile(join(part, MANIFEST), `${JSON.stringify(manifest, undefined, 1)}\n`, { mode: 0o600 });
    await flushTree(part);
    await rename(part, path);
    await flush(all);
    const names = new Set(files.map((file) => basename(file.path, ".img")));
    const leftOut = (await sandboxes()).filter((id) => !names.has(id));
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    return { path, files: files.length, bytes, workspaces_left_out: leftOut.length };
  } catch (error) {
    await rm(part, { recursive: true, force: true });
    throw error;
  }
}

/** Returns a version of `make` that throws `limit_exceeded` while an earlier call is in progress. */
export function oneAtATime<T>(make: () => Promise<T>): () => Promise<T> {
  let isAtWork = false;
  return async () => {
    if (isAtWork) throw new AppError("limit_exceeded", "A backup is in progress. Try again when it is done.");
    isAtWork = true;
    try {
      return await make();
    } finally {
      isAtWork = false;
    }
  };
}

/** Throws `invalid_request` if a file in the folder is missing, or was added or changed since the backup. */
export async function verifyBackup(dir: string): Promise<Manifest> {
  const text = await readFile(join(dir, MANIFEST), "utf8").catch(() => "");
  const manifest = Manifest.safeParse(parsed(text)).data;
  if (!manifest) throw new AppError("invalid_request", `\`${dir}\` is not a backup: it has no ${MANIFEST}.`);
  const found = new Map((await filesOf(dir)).map((file) => [file.path, file]));
  for (const { path, sha256 } of manifest.files) {
    const there = found.get(path);
    if (there?.sha256 !== sha256)
      throw new AppError(
        "invalid_request",
        `The backup \`${dir}\` is damaged: \`${path}\` ${there ? "was changed" : "is missing"}.`,
      );
    found.delete(path);
  }
  const [more] = found.keys();
  if (more === undefined) return manifest;
  throw new AppError("invalid_request", `The backup \`${dir}\` is damaged: \`${more}\` was added.`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const run = promisify(execFile);
/** The number of attempts to copy a folder in use, whose files may disappear during the copy. */
const ATTEMPTS = 3;

/**
 * Copies a folder including modes, times and links. Sparse files stay sparse. Does nothing if the folder does not
 * exist.
 */
export async function copyTree(from: string, to: string): Promise<void> {
  if (!(await stat(from).catch(() => undefined))) return;
  for (let attempt = 1; ; attempt++)
    try {
      await rm(to, { recursive: true, force: true });
      await run("cp", ["-a", "--", from, to]);
      return;
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
    }
}

/** Returns the files by path, without the manifest. */
async function filesOf(dir: string): Promise<Manifest["files"]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const files: Manifest["files"] = [];
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    const name = relative(dir, path);
    if (!entry.isFile() || name === MANIFEST) continue;
    files.push({ path: name, bytes: (await stat(path)).size, sha256: await hashOf(path) });
  }
  return files.sort((a, b) => (a.path < b.path ? -1 : 1));
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path)) hash.update(chunk as Uint8Array);
  return hash.digest("hex");
}

/** Returns once all files of a folder, and their names, are on disk. */
export async function flushTree(dir: string): Promise<void> {
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true }))
    if (entry.isFile() || entry.isDirectory()) await flush(join(entry.parentPath, entry.name));
  await flush(dir);
}

/** Returns once a file, or the names in a folder, are on disk. */
export async function flush(path: string): Promise<void> {
  await using handle = await open(path, "r");
  await handle.sync();
}
