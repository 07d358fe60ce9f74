// A disk image: a file that contains an ext4 file system of a fixed size, so that the kernel refuses data that does not fit. On
// the host it takes up only what is in it. The caller must have the file to itself: no other process or device uses it.

import { open, rename, rm, truncate } from "node:fs/promises";
import { CommandFailed, runCommand } from "../host-command.ts";

/** The uid and gid of a sandbox's user. */
const TENANT = 1000;
const BLOCK_BYTES = 4096;
const GROUP_BLOCKS = 8 * BLOCK_BYTES;
const MIN_GROUP_BLOCKS = GROUP_BLOCKS / 8;
/** A file system of a gigabyte holds 131,072 files and folders. */
const BYTES_PER_FILE = 8192;
/** In MiB. The journal protects the files when the host crashes; it counts as used, so it has the smallest size. */
const JOURNAL = 4;
/** Checking a large file system is slow. */
const REPAIR_MS = 10 * 60_000;

const SUPERBLOCK_AT = 1024;
const MAGIC = 0xef53;
const IS_VALID = 1;
const HAS_ERRORS = 2;
/** Exit codes of e2fsck from here on mean uncorrected errors; lower ones, corrected errors. */
const UNCORRECTED = 4;

export interface ImageState {
  /** False when it must be repaired before use. */
  readonly isSound: boolean;
  /** The size of the file system. */
  readonly bytes: number;
}

/** Creates it as `<path>.new` first, and replaces one that a crashed server left behind. */
export async function makeImage(path: string, bytes: number, signal: AbortSignal): Promise<void> {
  const draft = `${path}.new`;
  await rm(draft, { force: true });
  try {
    const file = await open(draft, "wx", 0o600);
    await file.truncate(blocksFor(bytes) * BLOCK_BYTES).finally(() => file.close());
    const layout = `-q -b ${BLOCK_BYTES} -i ${BYTES_PER_FILE} -m 0 -J size=${JOURNAL}`;
    // After an error the file system becomes read-only, so that damage does not spread.
    const safety = `-e remount-ro -E root_owner=${TENANT}:${TENANT},lazy_journal_init=1`;
    await runCommand("mkfs.ext4", [...`${layout} ${safety}`.split(" "), draft], { signal });
    await handOverLostAndFound(draft, signal);
    await flush(draft);
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** Reads the superblock from the file, without what a mounted file system has not written yet. */
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

/** Whether it can be used for a workspace of `bytes` as it is; a larger one can. */
export const isFit = (state: ImageState, bytes: number) =>
  state.isSound && state.bytes >= blocksFor(bytes) * BLOCK_BYTES;

/**
 * Repairs it and, if it is smaller, grows it to `bytes`. Safe to repeat after a crash. Throws `CommandFailed` when it
 * cannot be repaired.
 */
export async function repairImage(path: string, bytes: number, signal: AbortSignal): Promise<void> {
  await check(path, signal);
  const blocks = blocksFor(bytes);
  if ((await readImage(path)).bytes < blocks * BLOCK_BYTES) {
    await truncate(path, blocks * BLOCK_BYTES);
    // Not interruptible: a partly resized file system may be unreadable.
    await runCommand("resize2fs", [path, `${blocks}`], { deadlineMs: REPAIR_MS });
  }
  await handOverLostAndFound(path, signal);
}

/** Repairs without loss first, and with possible loss only if that fails. */
async function check(path: string, signal: AbortSignal): Promise<void> {
  const options = { signal, deadlineMs: REPAIR_MS };
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

/** Removes the folder for files that a check recovers if it is empty, otherwise gives it to the user. */
async function handOverLostAndFound(path: string, signal: AbortSignal): Promise<void> {
  const own = ["uid", "gid"].map((field) => `set_inode_field lost+found ${field} ${TENANT}`);
  const input = ["rmdir lost+found", ...own, ""].join("\n");
  await runCommand("debugfs", ["-w", "-f", "-", path], { signal, input });
}

/** Flushed before it is renamed, so that a file with its final name is complete even after a crash of the host. */
async function flush(path: string): Promise<void> {
  const file = await open(path, "r");
  await file.sync().finally(() => file.close());
}

/** The blocks that fit `bytes`, without a last group that would be too small for ext4. */
function blocksFor(bytes: number): number {
  const blocks = Math.floor(bytes / BLOCK_BYTES);
  const last = blocks % GROUP_BLOCKS;
  return blocks > GROUP_BLOCKS && last < MIN_GROUP_BLOCKS ? blocks - last : blocks;
}
