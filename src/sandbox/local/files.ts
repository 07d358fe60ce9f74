// Files of a workspace on this machine's disk. Every path is pinned before use. A file is written to staging and then
// moved to its place, so it appears either complete or not at all.

import type { Stats } from "node:fs";
import { chmod, type FileHandle, lstat, mkdir, open, opendir, rename, unlink } from "node:fs/promises";
import { posix } from "node:path";
import type { Backend, FileStat, SearchMatches } from "../../agent/core/backend.ts";
import { AppError } from "../../agent/core/errors.ts";
import { untilAborted } from "../../lib/async.ts";
import { assertRemovable, failure, quoted, toRelative } from "../paths.ts";
import type { FileTree } from "../search.ts";
import {
  codeOf,
  ensureFolders,
  erase,
  isMissing,
  openFile,
  type PinnedPath,
  pin,
  requireFile,
  stagingPath,
  toAppError,
  unlessMissing,
  type Workspace,
  withPinned,
} from "./workspace.ts";

/** The maximum number of entries in a listing, in disk order. */
const MAX_LISTED = 10_000;
/** The maximum number of entries that a search visits. */
const MAX_WALKED = 50_000;
const READ_BYTES = 64 * 1024;
const STATS_AT_ONCE = 32;

type Files = FileTree & Pick<Backend, "stat" | "read" | "write" | "list" | "remove">;

/**
 * Creates the file operations. An agent may name a file by a path below `workdir` or by its real path, which
 * commands print.
 */
export function localFiles(workspace: Workspace, workdir: string): Files {
  const { root } = workspace;

  /** Runs one operation and reports disk errors as failures that concern `path`. */
  const on = async <T>(
    path: string,
    signal: AbortSignal,
    work: (relative: string) => Promise<T>,
  ): Promise<T> => {
    signal.throwIfAborted();
    try {
      return await work(toRelative(path, [workdir, root]));
    } catch (error) {
      throw toAppError(error, path, signal);
    }
  };
  const statOf = (real: string, stats: Stats): FileStat => ({
    path: workdir + real.slice(root.length),
    type: kindOf(stats),
    size: stats.size,
    modified_at: stats.mtime.toISOString(),
  });

  return {
    workdir,

    stat: (path, signal) =>
      on(path, signal, (relative) =>
        withPinned(root, relative, async ({ real, stats }) => statOf(real, stats)),
      ),

    async *read(path, { offset = 0, length = Number.POSITIVE_INFINITY }, signal) {
      const pinned = await on(path, signal, (relative) => pin(root, relative));
      try {
        requireFile(pinned.stats, path);
        yield* bytesOf(pinned, offset, length, signal);
      } catch (error) {
        throw toAppError(error, path, signal);
      } finally {
        await pinned.close();
      }
    },

    write: (path, data, signal) =>
      on(path, signal, async (relative) => {
        await ensureFolders(workspace);
        return writeFile(workspace, { path, relative }, data, signal);
      }),

    list: (path, signal) =>
      on(path, signal, (relative) =>
        withPinned(root, relative, async ({ at, real, stats }) => {
          if (!stats.isDirectory()) throw failure("NOFOLDER", path);
          const found = await statsIn(at, signal);
          return found.map(([name, stats]) => statOf(`${real}/${name}`, stats));
        }),
      ),

    remove: (path, signal) =>
      on(path, signal, async (relative) => {
        assertRemovable(relative);
        await withPinned(root, posix.dirname(relative), async (parent) => {
          const entry = `${parent.at}/${posix.basename(relative)}`;
          if (!(await lstat(entry)).isDirectory()) return unlink(entry);
          // Moving a folder changes its `..`, so the folder's mode must allow writing.
          await withPinned(root, relative, ({ at, stats }) => chmod(at, stats.mode | 0o700));
          // The server's next start erases any files that are left.
          const trash = stagingPath(workspace);
          await rename(entry, trash);
          await erase(trash, workspace, signal).catch(() => {});
        });
      }),

    files: (folder, skipped, signal) => walk(root, folder, skipped, signal),

    async *contents(paths, maxBytes, signal) {
      for (const path of paths) {
        signal.throwIfAborted();
        const bytes = await withPinned(root, path, (pinned) => wholeOf(pinned, maxBytes)).catch(
          () => undefined,
        );
        if (bytes) yield { path, bytes };
      }
    },
  };
}

function kindOf(stats: Stats): FileStat["type"] {
  if (stats.isFile()) return "file";
  if (stats.isDirectory()) return "directory";
  return stats.isSymbolicLink() ? "symlink" : "other";
}

/** Reads up to the current size, so reading a growing file ends. */
async function* bytesOf(pinned: PinnedPath, offset: number, length: number, signal: AbortSignal) {
  const file = await openFile(pinned);
  try {
    const end = Math.min(offset + length, pinned.stats.size);
    for (let position = offset; position < end; ) {
      signal.throwIfAborted();
      const buffer = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, end - position));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, position);
      if (bytesRead === 0) return;
      position += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

async function wholeOf(pinned: PinnedPath, maxBytes: number): Promise<Uint8Array | undefined> {
  if (!pinned.stats.isFile() || pinned.stats.size > maxBytes) return undefined;
  const file = await openFile(pinned);
  try {
    const buffer = Buffer.allocUnsafeSlow(pinned.stats.size);
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** Returns the entries of a folder, sorted by name. Omits entries that disappear in the meantime. */
async function statsIn(folder: string, signal: AbortSignal): Promise<[string, Stats][]> {
  const names: string[] = [];
  for await (const { name } of await opendir(folder)) {
    signal.throwIfAborted();
    if (names.push(name) === MAX_LISTED) break;
  }
  names.sort();
  const found: [string, Stats][] = [];
  for (let at = 0; at < names.length; at += STATS_AT_ONCE) {
    signal.throwIfAborted();
    const batch = names.slice(at, at + STATS_AT_ONCE);
    const stats = await Promise.all(batch.map((name) => lstat(`${folder}/${name}`).catch(unlessMissing)));
    batch.forEach((name, index) => {
      const entry = stats[index];
      if (entry) found.push([name, entry]);
    });
  }
  return found;
}

async function walk(
  root: string,
  folder: string,
  skipped: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<SearchMatches<string>> {
  const files: string[] = [];
  const folders = [folder];
  let seen = 0;
  for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
    signal.throwIfAborted();
    // Skips a folder that is missing or unreadable.
    const pinned = await pin(root, next).catch(() => undefined);
    if (!pinned) continue;
    try {
      for await (const entry of await opendir(pinned.at)) {
        if (++seen > MAX_WALKED) return { matches: files, truncated: true };
        const path = next === "" ? entry.name : `${next}/${entry.name}`;
        if (entry.isFile()) files.push(path);
        else if (entry.isDirectory() && !skipped.has(entry.name)) folders.push(path);
      }
    } catch {
      signal.throwIfAborted();
    } finally {
      await pinned.close();
    }
  }
  return { matches: files, truncated: false };
}

interface FileTarget {
  /** The path as the agent wrote it, for messages. */
  readonly path: string;
  readonly relative: string;
}

/**
 * Writes a file. Keeps the mode of an existing file. Returns the number of bytes written. Throws errno errors
 * and refusals.
 */
async function writeFile(
  workspace: Workspace,
  target: FileTarget,
  data: Uint8Array | AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<number> {
  const { folder, name, mode } = await placeFor(workspace.root, target);
  const temporary = stagingPath(workspace);
  try {
    const bytes = await fill(temporary, data, mode, signal);
    await rename(temporary, `${folder.at}/${name}`);
    return bytes;
  } catch (error) {
    await unlink(temporary).catch(() => {});
    throw error;
  } finally {
    await folder.close();
  }
}

async function fill(
  path: string,
  data: Uint8Array | AsyncIterable<Uint8Array>,
  mode: number | undefined,
  signal: AbortSignal,
): Promise<number> {
  const file = await open(path, "wx", 0o666);
  let bytes = 0;
  try {
    for await (const chunk of data instanceof Uint8Array ? [data] : untilAborted(data, signal)) {
      await writeAll(file, chunk);
      bytes += chunk.length;
      signal.throwIfAborted();
    }
    if (mode !== undefined) await file.chmod(mode);
    return bytes;
  } finally {
    await file.close();
  }
}

async function writeAll(file: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at)).bytesWritten;
}

/** Returns the file's folder after following links. The caller closes it. */
async function placeFor(
  root: string,
  { path, relative }: FileTarget,
  mayFollow = true,
): Promise<{ folder: PinnedPath; name: string; mode: number | undefined }> {
  if (relative === "") throw failure("EISDIR", path);
  const name = posix.basename(relative);
  const folder = await folderAt(root, posix.dirname(relative));
  try {
    const stats = await lstat(`${folder.at}/${name}`).catch(unlessMissing);
    if (!stats?.isSymbolicLink()) {
      if (stats) requireFile(stats, path);
      return { folder, name, mode: stats && stats.mode & 0o777 };
    }
  } catch (error) {
    await folder.close();
    throw error;
  }
  await folder.close();
  if (!mayFollow)
    throw new AppError("backend_refused", `${quoted(path)} was changed in the meantime. Try again.`);
  return placeFor(root, { path, relative: await linkTarget(root, path, relative) }, false);
}

async function linkTarget(root: string, path: string, relative: string): Promise<string> {
  try {
    return await withPinned(root, relative, async ({ real }) => real.slice(root.length + 1));
  } catch (error) {
    if (!isMissing(error)) throw error;
    throw failure("DANGLING", path);
  }
}

/** Creates the folder and its missing parents. */
async function folderAt(root: string, relative: string): Promise<PinnedPath> {
  try {
    return await pin(root, relative);
  } catch (error) {
    if (!isMissing(error) || relative === ".") throw error;
  }
  const parent = await folderAt(root, posix.dirname(relative));
  try {
    await mkdir(`${parent.at}/${posix.basename(relative)}`);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  } finally {
    await parent.close();
  }
  return pin(root, relative);
}
