// A disk image is a file with an ext4 file system of a fixed size. The kernel refuses data that does not fit. The file
// uses only as much space on the host's disk as its contents need. The caller must have exclusive use of the file. No
// other process or device may use it.

import { open, rename, rm, truncate } from "node:fs/promises";
import { CommandFailed, runCommand } from "../host-command.ts";

/** The uid and gid of the user in the sandbox. */
const TENANT = 1000;
const BLOCK_BYTES = 4096;
const GROUP_BLOCKS = 8 * BLOCK_BYTES;
const MIN_GROUP_BLOCKS = GROUP_BLOCKS / 8;
/**
 * Limits the number of files and folders. For example, a file system of 1 GiB can contain 131,072 files and folders.
 */
const BYTES_PER_FILE = 8192;
/**
 * The size of the journal in MiB. The journal protects the files if the host crashes. It counts as used space, so it
 * has the minimum size.
 */
const JOURNAL = 4;
/** The time limit for a repair in milliseconds. Checking a large file system is slow. */
const REPAIR_MS = 10 * 60_000;

const SUPERBLOCK_AT = 1024;
const MAGIC = 0xef53;
const IS_VALID = 1;
const HAS_ERRORS = 2;
/**
 * The lowest exit code of e2fsck that means uncorrected errors. Lower codes mean that all errors were
 * corrected.
 */
const UNCORRECTED = 4;

export interface ImageState {
  /** False if the file system must be repaired before use. */
  readonly isSound: boolean;
  /** The size of the file system. */
  readonly bytes: number;
}

/**
 * Creates the image as `<path>.new` and then renames it. Replaces a file with this name that a crashed server
 * left behind.
 */
export async function makeImage(path: string, bytes: number, signal: AbortSignal): Promise<void> {
  const draft = `${path}.new`;
  await rm(draft, { force: true });
  try {
    const file = await open(draft, "wx", 0o600);
    await file.truncate(blocksFor(bytes) * BLOCK_BYTES).finally(() => file.close());
    const layout = `-q -b ${BLOCK_BYTES} -i ${BYTES_PER_FILE} -m 0 -J size=${JOURNAL}`;
    // After an error, the file system becomes read-only, so damage cannot spread.
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

/** Reads the superblock from the file. Does not see data that a mounted file system has not written yet. */
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

/** True if a workspace of `bytes` can use the image without repair. A larger image qualifies too. */
export const isFit = (state: ImageState, bytes: number) =>
  state.isSound && state.bytes >= blocksFor(bytes) * BLOCK_BYTES;

/**
 * Repairs the image and, if it is smaller than `bytes`, grows it. Safe to repeat after a crash. Throws `CommandFailed`
 * if the image cannot be repaired.
 */
export async function repairImage(path: string, bytes: number, signal: AbortSignal): Promise<void> {
  await check(path, signal);
  const blocks = blocksFor(bytes);
  if ((await readImage(path)).bytes < blocks * BLOCK_BYTES) {
    await truncate(path, blocks * BLOCK_BYTES);
    // This must not be interrupted, because a partly resized file system may be unreadable.
    await runCommand("resize2fs", [path, `${blocks}`], { deadlineMs: REPAIR_MS });
  }
  await handOverLostAndFound(path, signal);
}

/**
 * Checks and repairs the image. First tries a repair without data loss, and accepts data loss only if that
 * fails.
 */
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

/** Removes `lost+found` if it is empty. Otherwise, makes the user its owner. */
async function handOverLostAndFound(path: string, signal: AbortSignal): Promise<void> {
  const own = ["uid", "gid"].map((field) => `set_inode_field lost+found ${field} ${TENANT}`);
  const input = ["rmdir lost+found", ...own, ""].join("\n");
  await runCommand("debugfs", ["-w", "-f", "-", path], { signal, input });
}

/**
 * Flushes the file before it is renamed. A file with its final name is therefore complete even after the host
 * crashes.
 */
async function flush(path: string): Promise<void> {
  const file = await open(path, "r");
  await file.sync().finally(() => file.close());
}

/**
 * Returns the number of blocks that fit into `bytes`. Omits the last group if it would be too small for ext4.
 */
function blocksFor(bytes: number): number {
  const blocks = Math.floor(bytes / BLOCK_BYTES);
  const last = blocks % GROUP_BLOCKS;
  return blocks > GROUP_BLOCKS && last < MIN_GROUP_BLOCKS ? blocks - last : blocks;
}
