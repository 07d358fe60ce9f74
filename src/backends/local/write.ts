// Writing a file so that it appears whole or not at all: into staging first, then moved to its place.

import { type FileHandle, lstat, mkdir, open, rename, unlink } from "node:fs/promises";
import { posix } from "node:path";
import { AppError } from "../../core/errors.ts";
import { untilAborted } from "../../lib/abortable.ts";
import { failure } from "../failures.ts";
import { quoted } from "../paths.ts";
import { codeOf, isMissing, unlessMissing } from "./failures.ts";
import { type Pinned, pin, requireFile, withPinned } from "./pin.ts";
import { stagingPath, type Workspace } from "./workspace.ts";

interface Target {
  /** As the agent wrote it, for messages. */
  readonly path: string;
  readonly relative: string;
}

/** A file that is there keeps its mode. Returns the bytes written. Throws errno errors and refusals. */
export async function writeFile(
  workspace: Workspace,
  target: Target,
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

/** The folder that holds the file, links followed; the caller closes it. */
async function placeFor(
  root: string,
  { path, relative }: Target,
  mayFollow = true,
): Promise<{ folder: Pinned; name: string; mode: number | undefined }> {
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
    throw new AppError("backend_refused", `${quoted(path)} is changed by someone else. Try again.`);
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

/** Made with all above it, where it is missing. */
async function folderAt(root: string, relative: string): Promise<Pinned> {
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
