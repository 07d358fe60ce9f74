// A workspace on this machine's disk: `files` for the agent, and beside it `staging`, on the same disk, for
// what is on its way in or out.

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
  readlink,
  realpath,
  rename,
  rmdir,
  unlink,
} from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "../../core/errors.ts";
import { isInside } from "../../lib/paths.ts";
import { hasEnded, PROCESS_ID } from "../../lib/process-id.ts";
import { randomId } from "../../lib/random-id.ts";
import type { Place } from "../definition.ts";
import { failure } from "../paths.ts";

/** Passes over a folder that does not get empty: some disks leave names out while others are removed. */
const MAX_ATTEMPTS = 3;

export interface Workspace {
  /** Hexadecimal; the same place always has the same. */
  readonly id: string;
  /** Real path of the agent's files. */
  readonly root: string;
  readonly staging: string;
}

/** Nothing that a user chose becomes part of a path. */
export function workspaceId({ owner, name }: Place): string {
  return createHash("sha256")
    .update(JSON.stringify([owner.tenant, owner.user, name]))
    .digest("hex")
    .slice(0, 32);
}

/** Makes the folders, for this process's user alone, and clears away what a process that died left in staging. */
export async function openWorkspace(dataDir: string, place: Place): Promise<Workspace> {
  const id = workspaceId(place);
  const folder = join(dataDir, "workspaces", id);
  try {
    for (const name of ["files", "staging"])
      await mkdir(join(folder, name), { recursive: true, mode: 0o700 });
    await chmod(folder, 0o700);
    const home = await realpath(folder);
    const workspace = { id, root: join(home, "files"), staging: join(home, "staging") };
    for (const name of await readdir(workspace.staging))
      if (hasEnded(name.split(".")[0] ?? ""))
        await erase(join(workspace.staging, name), workspace).catch(() => {});
    return workspace;
  } catch (error) {
    throw new AppError(
      "backend_failed",
      `The workspace cannot be made in the server's DATA_DIR (${codeOf(error) ?? "unknown error"}).`,
      { cause: error },
    );
  }
}

/** The folders again, should a command have removed them. */
export async function ensureFolders({ root, staging }: Workspace): Promise<void> {
  for (const folder of [root, staging]) await mkdir(folder, { recursive: true, mode: 0o700 });
}

/** A name in staging that no one else has. */
export const stagingPath = ({ staging }: Workspace) => join(staging, `${PROCESS_ID}.${randomId()}`);

/**
 * Removes what lies in staging, whatever it is. Folders in it are moved up first, so that no depth is too
 * deep and every path stays short. What a running process keeps filling is left for the next start.
 */
export async function erase(path: string, workspace: Workspace, signal?: AbortSignal): Promise<void> {
  const pending = [path];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const stats = await lstat(next).catch(unlessMissing);
    if (stats?.isDirectory()) pending.push(...(await eraseFolder(next, workspace, signal)));
    else await unlink(next).catch(unlessMissing);
  }
}

/** Returns where the folders are now that were in it. */
async function eraseFolder(folder: string, workspace: Workspace, signal?: AbortSignal): Promise<string[]> {
  const moved: string[] = [];
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    await chmod(folder, 0o700);
    // Names as bytes: they need not be text.
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
  // Moving a folder changes its `..`, which its own mode must allow.
  await chmod(folder, 0o700);
  await rename(folder, place);
  return place;
}

// Holding on to a file or folder inside a workspace, so that a link put in its path meanwhile leads nowhere.
//
// On Linux the entry is opened by `O_PATH`, which follows links but touches nothing; where it really is, is
// read off the open entry, and from then on everything is done through it. Elsewhere the real path takes its
// place: a process of the user that swaps folders for links at the right moment is not held off there.
/** Node has no name for it. The same on every architecture that it runs on. */
const O_PATH = 0x200000;
/** Of looks at a file that is replaced all the time. */
const MAX_PINS = 10;

export interface Pinned {
  /** Reaches the entry itself, and with `/name` behind it what is in it. Good until `close`. */
  readonly at: string;
  /** Where it really is: inside the root. */
  readonly real: string;
  readonly stats: Stats;
  close(): Promise<void>;
}

/** `relative` is read from `root`, a real path. Throws `backend_refused` when it ends elsewhere, and errno errors. */
export async function pin(root: string, relative: string): Promise<Pinned> {
  if (!HAS_PROC) {
    const real = checked(root, await realpath(join(root, relative)), relative);
    return { at: real, real, stats: await lstat(real), close: async () => {} };
  }
  for (let attempt = 1; ; attempt++) {
    const pinned = await pinOpen(root, relative);
    // Replaced by another since it was opened: what is there now has its name.
    const isReplaced = pinned.stats.nlink === 0 && pinned.real.endsWith(" (deleted)");
    if (!isReplaced || attempt === MAX_PINS) return pinned;
    await pinned.close();
  }
}

async function pinOpen(root: string, relative: string): Promise<Pinned> {
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
  use: (pinned: Pinned) => Promise<T>,
): Promise<T> {
  const pinned = await pin(root, relative);
  try {
    return await use(pinned);
  } finally {
    await pinned.close();
  }
}

/** Opens a regular file for reading: nothing else, so that no pipe or device is waited for. The caller closes it. */
export async function openFile({ at, stats }: Pinned): Promise<FileHandle> {
  const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW } = constants;
  const handle = await open(at, O_RDONLY | O_NONBLOCK | (HAS_PROC ? 0 : O_NOFOLLOW));
  const opened = await handle.stat();
  if (opened.isFile() && opened.ino === stats.ino && opened.dev === stats.dev) return handle;
  await handle.close();
  throw new AppError("backend_refused", "The file was replaced while it was opened. Try again.");
}

/** `path` is the agent's. */
export function requireFile(stats: Stats, path: string): void {
  if (stats.isDirectory()) throw failure("EISDIR", path);
  if (!stats.isFile()) throw failure("NOFILE", path);
}

function checked(root: string, real: string, relative: string): string {
  if (isInside(root, real)) return real;
  throw failure("OUTSIDE", relative || ".");
}

// What this machine's system can do.
/** Whether open files and running processes can be looked at under /proc, as on Linux. */
export const HAS_PROC = process.platform === "linux" && existsSync("/proc/self/fd");

// What the operating system says, in the words of the port: about the agent's path, never the host's.

/** An `AppError`, or an abort's reason, as it is. */
export function toAppError(error: unknown, path: string, signal?: AbortSignal): unknown {
  if (error instanceof AppError || (signal?.aborted && error === signal.reason)) return error;
  return failure(codeOf(error) ?? "unknown error", path, error);
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

export const isMissing = (error: unknown) => codeOf(error) === "ENOENT";

/** For a `catch`: nothing when there is no such file; throws anything else. */
export function unlessMissing(error: unknown): undefined {
  if (!isMissing(error)) throw error;
}
