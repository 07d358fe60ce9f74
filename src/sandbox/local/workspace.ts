// A workspace on this machine's disk. It consists of `files` for the agent, `home` as the home directory of its
// commands, and `staging` for files that are being written or erased. A path is pinned while it is used, so replacing a
// part of it with a link has no effect.
//
// On Linux, an entry is opened with `O_PATH`, which follows links but changes nothing. The real path is read from the
// open entry, and all access uses that entry. Other systems use the real path. On these systems, nothing stops a
// process of the same user that replaces folders with links at the right moment.

import { createHash } from "node:crypto";
import { constants, existsSync, type Stats } from "node:fs";
import {
  chmod,
  type FileHandle,
  lstat,
  mkdir,
  open,
  opendir,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  rmdir,
  unlink,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "../../agent/core/errors.ts";
import { isInside } from "../../lib/paths.ts";
import { hasEnded, PROCESS_ID } from "../../lib/process-id.ts";
import { randomId } from "../../lib/random-id.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { BackendKey } from "../definition.ts";
import { failure } from "../paths.ts";

/**
 * The maximum number of attempts to empty a folder before it is skipped. Some disks omit names while other
 * names are being removed.
 */
const MAX_ATTEMPTS = 3;

export interface Workspace {
  /** The hexadecimal id. The same owner and backend name always have the same id. */
  readonly id: string;
  /** The real path of the agent's files. */
  readonly root: string;
  readonly home: string;
  readonly staging: string;
}

const workspaceIn = (folder: string, id: string): Workspace => ({
  id,
  root: join(folder, "files"),
  home: join(folder, "home"),
  staging: join(folder, "staging"),
});

/** Returns the id. It is a hash, so no user text becomes part of a path. */
export function workspaceId({ owner, name }: BackendKey): string {
  return createHash("sha256")
    .update(JSON.stringify([owner.tenant, owner.user, name]))
    .digest("hex")
    .slice(0, 32);
}

/**
 * Creates the folders, accessible only to this process's user, and erases staging that crashed processes left
 * behind. Records `server` as the server that uses the workspace.
 */
export async function openWorkspace(dataDir: string, place: BackendKey, server: string): Promise<Workspace> {
  const id = workspaceId(place);
  const folder = folderOf(dataDir, place);
  try {
    await ensureFolders(workspaceIn(folder, id));
    await chmod(folder, 0o700);
    await notePlace(folder, place, server);
    const workspace = workspaceIn(await realpath(folder), id);
    for (const name of await readdir(workspace.staging))
      if (hasEnded(name.split(".")[0] ?? ""))
        await erase(join(workspace.staging, name), workspace).catch(() => {});
    return workspace;
  } catch (error) {
    throw new AppError(
      "backend_failed",
      `The workspace cannot be created in the server's DATA_DIR (${codeOf(error) ?? "unknown error"}).`,
      { cause: error },
    );
  }
}

/**
 * The file that names the owner, which the hashed folder name hides, and the server that uses the workspace.
 */
const PLACE = "place";
type PlaceNote = [tenant?: string, user?: string, name?: string, server?: string];

async function notePlace(folder: string, { owner, name }: BackendKey, server?: string): Promise<void> {
  const note: PlaceNote = [owner.tenant, owner.user, name];
  if (server !== undefined) note.push(server);
  const fresh = join(folder, "staging", `${PROCESS_ID}.${randomId()}`);
  await writeFile(fresh, JSON.stringify(note), { mode: 0o600 });
  await rename(fresh, join(folder, PLACE));
}

async function readPlace(folder: string): Promise<PlaceNote> {
  const text = await readFile(join(folder, PLACE), "utf8").catch(unlessMissing);
  return text === undefined ? [] : (JSON.parse(text) as PlaceNote);
}

const folderOf = (dataDir: string, place: BackendKey) => join(dataDir, "workspaces", workspaceId(place));

/**
 * Returns the server that last opened the workspace. Returns undefined if it has been marked as unused since
 * then.
 */
export async function usedBy(dataDir: string, place: BackendKey): Promise<string | undefined> {
  const [, , , server] = await readPlace(folderOf(dataDir, place));
  return server;
}

export async function markUnused(dataDir: string, place: BackendKey): Promise<void> {
  await notePlace(folderOf(dataDir, place), place).catch(unlessMissing);
}

/** Returns the ids of the owner's workspaces. */
export async function workspacesOf(dataDir: string, owner: Owner): Promise<string[]> {
  const all = join(dataDir, "workspaces");
  const found: string[] = [];
  for (const id of (await readdir(all).catch(unlessMissing)) ?? []) {
    const [tenant, user] = await readPlace(join(all, id));
    if (tenant === owner.tenant && user === owner.user) found.push(id);
  }
  return found;
}

/**
 * Erases the workspace and its contents. If two calls compete, only one resolves with true. A later call
 * continues an unfinished or interrupted erasure, and the earlier call then ends.
 */
export async function eraseWorkspace(dataDir: string, found: string): Promise<boolean> {
  const all = join(dataDir, "workspaces");
  const id = `erased-${randomId()}`;
  const folder = join(all, id);
  const moved = await rename(join(all, found), folder).then(() => true, unlessMissing);
  if (!moved) return false;
  const workspace = workspaceIn(folder, id);
  await ensureFolders(workspace);
  for (const part of [workspace.root, workspace.home]) await erase(part, workspace).catch(unlessMissing);
  await rm(folder, { recursive: true, force: true });
  return true;
}

/** Recreates the folders if a command removed them. */
export async function ensureFolders({ root, home, staging }: Workspace): Promise<void> {
  for (const folder of [root, home, staging]) await mkdir(folder, { recursive: true, mode: 0o700 });
}

/** Returns a unique name in staging. */
export const stagingPath = ({ staging }: Workspace) => join(staging, `${PROCESS_ID}.${randomId()}`);

/**
 * Removes an entry of staging. Moves inner folders up first, so folders of any depth can be erased and paths stay
 * short. The server's next start erases a folder that a running process keeps filling.
 */
export async function erase(path: string, workspace: Workspace, signal?: AbortSignal): Promise<void> {
  const pending = [path];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const stats = await lstat(next).catch(unlessMissing);
    if (stats?.isDirectory()) pending.push(...(await eraseFolder(next, workspace, signal)));
    else await unlink(next).catch(unlessMissing);
  }
}

/** Returns the new paths of the folders that were in `folder`. */
async function eraseFolder(folder: string, workspace: Workspace, signal?: AbortSignal): Promise<string[]> {
  const moved: string[] = [];
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    await chmod(folder, 0o700);
    // Reads names as bytes, because they may not be valid text.
    for await (const entry of await opendir(folder, { encoding: "latin1" })) {
      signal?.throwIfAborted();
      const path = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(entry.name, "latin1")]);
      if (entry.isDirectory()) moved.push(await moveToStaging(path, workspace));
      else await unlink(path).catch(unlessMissing);
    }
    const code = await rmdir(folder).then(() => undefined, codeOf);
    if (code !== "ENOTEMPTY") break;
  }
  return moved;
}

async function moveToStaging(folder: Buffer, workspace: Workspace): Promise<string> {
  const place = stagingPath(workspace);
  // Moving a folder changes its `..`, so the folder's mode must allow writing.
  await chmod(folder, 0o700);
  await rename(folder, place);
  return place;
}

/**
 * Node does not define this constant. The value is the same on every Linux architecture that Node supports.
 */
const O_PATH = 0x200000;
/** The maximum number of attempts to open a file that is being replaced. */
const MAX_PINS = 10;

export interface PinnedPath {
  /** The path to the entry. If it is a folder, `/name` can be appended to reach an entry in it. Valid until `close`. */
  readonly at: string;
  /** The real path, which is inside the root. */
  readonly real: string;
  readonly stats: Stats;
  close(): Promise<void>;
}

/**
 * Pins a path. `relative` starts at `root`, which is a real path. Throws `backend_refused` for a path that leads out of
 * the root, and errno errors.
 */
export async function pin(root: string, relative: string): Promise<PinnedPath> {
  if (!HAS_PROC) {
    const real = checked(root, await realpath(join(root, relative)), relative);
    return { at: real, real, stats: await lstat(real), close: async () => {} };
  }
  for (let attempt = 1; ; attempt++) {
    const pinned = await pinOpen(root, relative);
    // True if the entry was replaced after it was opened, so its name now belongs to another entry.
    const isReplaced = pinned.stats.nlink === 0 && pinned.real.endsWith(" (deleted)");
    if (!isReplaced || attempt === MAX_PINS) return pinned;
    await pinned.close();
  }
}

async function pinOpen(root: string, relative: string): Promise<PinnedPath> {
  const handle = await open(join(root, relative), O_PATH);
  try {
    const at = `/proc/self/fd/${handle.fd}`;
    const real = checked(root, await readlink(at), relative);
    return { at, real, stats: await handle.stat(), close: () => handle.close() };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

export async function withPinned<T>(
  root: string,
  relative: string,
  use: (pinned: PinnedPath) => Promise<T>,
): Promise<T> {
  const pinned = await pin(root, relative);
  try {
    return await use(pinned);
  } finally {
    await pinned.close();
  }
}

/** Opens a regular file for reading. Refuses other types, because a pipe or device may block. The caller closes it. */
export async function openFile({ at, stats }: PinnedPath): Promise<FileHandle> {
  const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW } = constants;
  const handle = await open(at, O_RDONLY | O_NONBLOCK | (HAS_PROC ? 0 : O_NOFOLLOW));
  const opened = await handle.stat();
  if (opened.isFile() && opened.ino === stats.ino && opened.dev === stats.dev) return handle;
  await handle.close();
  throw new AppError("backend_refused", "The file was replaced while it was being opened. Try again.");
}

/** Throws if the entry is not a file. `path` is the path that the agent wrote. */
export function requireFile(stats: Stats, path: string): void {
  if (stats.isDirectory()) throw failure("EISDIR", path);
  if (!stats.isFile()) throw failure("NOFILE", path);
}

function checked(root: string, real: string, relative: string): string {
  if (isInside(root, real)) return real;
  throw failure("OUTSIDE", relative || ".");
}

/** True if /proc lists open files and running processes, as on Linux. */
export const HAS_PROC = process.platform === "linux" && existsSync("/proc/self/fd");

/**
 * Converts errors of the operating system to failures that concern the agent's path. Returns an `AppError` or an
 * abort reason unchanged.
 */
export function toAppError(error: unknown, path: string, signal?: AbortSignal): unknown {
  if (error instanceof AppError || (signal?.aborted && error === signal.reason)) return error;
  return failure(codeOf(error) ?? "unknown error", path, error);
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

export const isMissing = (error: unknown) => codeOf(error) === "ENOENT";

/** For use in `catch`. Ignores a missing file and throws any other error. */
export function unlessMissing(error: unknown): undefined {
  if (!isMissing(error)) throw error;
}
