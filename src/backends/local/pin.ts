// Holding on to a file or folder inside a workspace, so that a link put in its path meanwhile leads nowhere.
//
// On Linux the entry is opened by `O_PATH`, which follows links but touches nothing; where it really is, is
// read off the open entry, and from then on everything is done through it. Elsewhere the real path takes its
// place: a process of the user that swaps folders for links at the right moment is not held off there.

import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, open, readlink, realpath } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "../../core/errors.ts";
import { isInside } from "../../lib/inside.ts";
import { failure } from "../failures.ts";
import { HAS_PROC } from "./platform.ts";

/** Node has no name for it. The same on every architecture that it runs on. */
const O_PATH = 0x200000;
/** Of looks at a file that is replaced all the time. */
const MAX_ATTEMPTS = 10;

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
    if (!isReplaced || attempt === MAX_ATTEMPTS) return pinned;
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
