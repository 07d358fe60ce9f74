// A file that holds a file system of its own, of a fixed size: what does not fit is refused by the kernel. It takes
// up on the host what is in it, not what it may hold.
//
// For a caller that has the file to itself: no other process, and no device, uses it meanwhile.

import { open, rename, rm, truncate } from "node:fs/promises";
import { CommandFailed, runCommand } from "./host-command.ts";

/** The user who works in a sandbox. */
const TENANT = 1000;
const BLOCK_BYTES = 4096;
const GROUP_BLOCKS = 8 * BLOCK_BYTES;
const MIN_GROUP_BLOCKS = GROUP_BLOCKS / 8;
/** A file system of a gigabyte holds 131,072 files and folders. */
const BYTES_PER_FILE = 8192;
/** In MiB. Keeps the files sound when the host goes down; the smallest there is, since it counts as used. */
const JOURNAL = 4;
/** Looking through a large file system takes its time. */
const MEND_MS = 10 * 60_000;

const SUPERBLOCK_AT = 1024;
const MAGIC = 0xef53;
const IS_VALID = 1;
const HAS_ERRORS = 2;
/** Exit codes of e2fsck from this one on; below it, what was wrong has been corrected. */
const UNCORRECTED = 4;

export interface ImageState {
  /** False when it cannot be used before it is mended. */
  readonly isSound: boolean;
  /** What the file system spans. */
  readonly bytes: number;
}

/** While it is made it is `<path>.new`. What is left of that by a server that died is made anew. */
export async function makeImage(path: string, bytes: number, signal: AbortSignal): Promise<void> {
  const draft = `${path}.new`;
  await rm(draft, { force: true });
  try {
    const file = await open(draft, "wx", 0o600);
    await file.truncate(blocksFor(bytes) * BLOCK_BYTES).finally(() => file.close());
    const options = [
      ...["-q", "-b", `${BLOCK_BYTES}`, "-i", `${BYTES_PER_FILE}`, "-m", "0", "-J", `size=${JOURNAL}`],
      // Damage that shows while it is in use makes it read-only, not worse.
      ...["-e", "remount-ro", "-E", `root_owner=${TENANT}:${TENANT},lazy_journal_init=1`],
    ];
    await runCommand("mkfs.ext4", [...options, draft], { signal });
    await handOverLostAndFound(draft, signal);
    await flush(draft);
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** Read from the file; what a mounted file system has not written yet is not in it. */
export async function readImage(path: string): Promise<ImageState> {
  const file = await open(path, "r");
  try {
    const { buffer } = await file.read(Buffer.alloc(1024), 0, 1024, SUPERBLOCK_AT);
    const blocks = buffer.readUInt32LE(0x04) + buffer.readUInt32LE(0x150) * 2 ** 32;
    const state = buffer.readUInt16LE(0x3a);
    return {
      isSound: buffer.readUInt16LE(0x38) === MAGIC && (state & (IS_VALID | HAS_ERRORS)) === IS_VALID,
      bytes: blocks * BLOCK_BYTES,
    };
  } finally {
    await file.close();
  }
}

/** Whether it can be used for a workspace of `bytes` as it is. One that is larger can. */
export const isFit = (state: ImageState, bytes: number) =>
  state.isSound && state.bytes >= blocksFor(bytes) * BLOCK_BYTES;

/**
 * Makes it sound and, if it is smaller, as large as `bytes`. Safe to repeat after a crash in the middle. Throws
 * `CommandFailed` when it is beyond repair.
 */
export async function mendImage(path: string, bytes: number, signal: AbortSignal): Promise<void> {
  await check(path, signal);
  const blocks = blocksFor(bytes);
  if ((await readImage(path)).bytes < blocks * BLOCK_BYTES) {
    await truncate(path, blocks * BLOCK_BYTES);
    // Not to be interrupted: half resized it may not be readable any more.
    await runCommand("resize2fs", [path, `${blocks}`], { deadlineMs: MEND_MS });
  }
  await handOverLostAndFound(path, signal);
}

/** First what can be mended without a loss, and only if that is not enough all that can be. */
async function check(path: string, signal: AbortSignal): Promise<void> {
  const options = { signal, deadlineMs: MEND_MS };
  const isCorrected = ({ code }: CommandFailed) => typeof code === "number" && code < UNCORRECTED;
  const unlessCorrected = (error: unknown) => {
    if (!(error instanceof CommandFailed && isCorrected(error))) throw error;
  };
  try {
    await runCommand("e2fsck", ["-f", "-p", path], options).catch(unlessCorrected);
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    await runCommand("e2fsck", ["-f", "-y", path], options).catch(unlessCorrected);
  }
}

/** The folder for what a check finds without a name: gone when it is empty, otherwise the user's own. */
async function handOverLostAndFound(path: string, signal: AbortSignal): Promise<void> {
  const own = ["uid", "gid"].map((field) => `set_inode_field lost+found ${field} ${TENANT}`);
  const input = ["rmdir lost+found", ...own, ""].join("\n");
  await runCommand("debugfs", ["-w", "-f", "-", path], { signal, input });
}

/** A file that has its name is whole, also after a crash of the host. */
async function flush(path: string): Promise<void> {
  const file = await open(path, "r");
  await file.sync().finally(() => file.close());
}

/** What fits `bytes`, less a last group of blocks that would be too small to be used. */
function blocksFor(bytes: number): number {
  const blocks = Math.floor(bytes / BLOCK_BYTES);
  const last = blocks % GROUP_BLOCKS;
  return blocks > GROUP_BLOCKS && last < MIN_GROUP_BLOCKS ? blocks - last : blocks;
}
