// Stores workspaces as files. Each file contains a file system, which a Docker volume mounts through a loop
// device.
//
// The kernel reuses device numbers, so after a host restart, a number may belong to another tenant's file. A volume
// therefore names a link. The link is in memory, disappears with the devices, and exists only while its file is
// attached. To find the device of a file, the code always starts from the file. Each change of a workspace takes a lock
// that all processes of the host respect, because two devices on one file would destroy it.

import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { access, lstat, mkdir, open, readdir, readlink, rename, rm, statfs, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AppError } from "../../../agent/core/errors.ts";
import type { Logger } from "../../../lib/logger.ts";
import { CommandFailed, runCommand, withLock } from "../host-command.ts";
import { isFit, makeImage, readImage, repairImage } from "./image.ts";

/** The type that `statfs` reports for a tmpfs. */
const IN_MEMORY = 0x01021994;

export interface LoopDisks {
  /** Returns the path of the link that the volume names as its device. */
  linkOf(id: string): string;
  /** True if the workspace's file exists. */
  has(id: string): Promise<boolean>;
  /** Makes the link mountable with a size of at least `bytes`. Safe to repeat, even from several processes. */
  attach(id: string, bytes: number, signal: AbortSignal): Promise<void>;
  /** Frees the device once it is unmounted. Keeps the file. */
  detach(id: string, signal: AbortSignal): Promise<void>;
  /** Deletes the file. The workspace must not be mounted. */
  erase(id: string, signal: AbortSignal): Promise<void>;
  list(): Promise<string[]>;
}

export interface LoopDisksOptions {
  /** The folder of the files. */
  readonly folder: string;
  /** One of `linkFolders`. The folder and its locks exist until the machine restarts. */
  readonly links: string;
  readonly logger: Logger;
}

/** Creates the disks. Throws errors of the host as `backend_failed`. */
export function loopDisks({ folder, links, logger }: LoopDisksOptions): LoopDisks {
  const imageOf = (id: string) => join(folder, `${id}.img`);
  const linkOf = (id: string) => join(links, id);
  const has = (id: string) => exists(imageOf(id));

  const alone = async (id: string, signal: AbortSignal, work: () => Promise<void>): Promise<void> => {
    try {
      await ownFolder(links);
      await withLock(join(links, lockOf(id)), signal, work);
    } catch (error) {
      signal.throwIfAborted();
      throw diskError(error);
    }
  };

  /** Removes the link first, so the link never leads to another file's device. */
  const detach = async (id: string, signal: AbortSignal): Promise<void> => {
    await rm(linkOf(id), { force: true });
    await detachDevices(imageOf(id), signal);
  };

  const attach = async (id: string, bytes: number, signal: AbortSignal): Promise<void> => {
    const image = imageOf(id);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if (!(await has(id))) await makeImage(image, bytes, signal);
    let device = await deviceOf(image, signal);
    const state = await readImage(image);
    const mayStay = isFit(state, bytes);
    if (device && !mayStay && !(await isMounted(device))) {
      await detach(id, signal);
      device = await deviceOf(image, signal);
    }
    if (!device) {
      await rm(linkOf(id), { force: true });
      if (!state.isSound) logger.warn({ sandbox: id }, "a workspace's disk is damaged and is being repaired");
      if (!mayStay) await repairImage(image, bytes, signal);
      device = await attachDevice(image, signal);
    }
    await pointTo(device, linkOf(id));
  };

  const erase = async (id: string, signal: AbortSignal): Promise<void> => {
    await detach(id, signal);
    await deviceOf(imageOf(id), signal);
    await rm(imageOf(id), { force: true });
  };

  return {
    linkOf,
    has,
    attach: (id, bytes, signal) => alone(id, signal, () => attach(id, bytes, signal)),
    async detach(id, signal) {
      if (await has(id)) await alone(id, signal, () => detach(id, signal));
    },
    async erase(id, signal) {
      if (await has(id)) await alone(id, signal, () => erase(id, signal));
      const draft = `${imageOf(id)}.new`;
      if (await exists(draft)) await rm(draft, { force: true });
    },
    async list() {
      const names = await readdir(folder).catch(() => []);
      const ids = names.map((name) => /^(.+)\.img(\.new)?$/.exec(name)?.[1]);
      return [...new Set(ids)].filter((id) => id !== undefined);
    },
  };
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

/** Returns candidate folders for a deployment's links, best first. They are in memory, so links never outlive devices. */
export async function linkFolders(mark: string): Promise<string[]> {
  const bases = await Promise.all(
    ["/run", "/dev/shm"].map(async (base) => {
      const stats = await statfs(base).catch(() => undefined);
      return stats?.type === IN_MEMORY ? base : undefined;
    }),
  );
  const name = hashOf(mark).slice(0, 16);
  return bases.filter((base) => base !== undefined).map((base) => join(base, "skein", name));
}

/** Creates the folder if it is missing. Throws if another user of this machine could change it. */
async function ownFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const each of [dirname(folder), folder]) {
    const stats = await lstat(each);
    if (!stats.isDirectory() || stats.uid !== process.getuid?.() || (stats.mode & 0o022) !== 0)
      throw new Error(`${each} belongs to another user`);
  }
}

/** Returns one of sixteen locks. If every workspace had its own lock, each one would leave a file behind. */
const lockOf = (id: string) => `.lock-${hashOf(id).charAt(0)}`;

const hashOf = (text: string) => createHash("sha256").update(text).digest("hex");

function diskError(cause: unknown): AppError {
  if (cause instanceof AppError) return cause;
  const message = `The workspace's disk failed: ${reasonOf(cause)}.`;
  return new AppError("backend_failed", message, { cause });
}

function reasonOf(cause: unknown): string {
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  if (code === "ENOSPC" || /no space left/i.test(String(cause))) return "the server's disk is full";
  if (cause instanceof CommandFailed) return `\`${cause.program}\` failed on the server; see its log`;
  return `the server's data folder cannot be used (${code ?? "unknown error"})`;
}

/** How long a detached device may stay mounted, in milliseconds. */
const UNMOUNT_MS = 5000;
const LOOK_AGAIN_MS = 50;

interface Device {
  readonly name: string;
  /** True if the device is detached and becomes free when it is unmounted. */
  readonly isGoing: boolean;
}

/**
 * Returns the file's device. Waits while the device is being detached. Throws `backend_failed` if the file has two
 * devices.
 */
export async function deviceOf(file: string, signal: AbortSignal): Promise<string | undefined> {
  for (const until = performance.now() + UNMOUNT_MS; ; ) {
    const devices = await devicesOf(file, signal);
    if (devices.length > 1)
      throw new AppError(
        "backend_failed",
        "The workspace's disk is attached more than once on the server. The operator must detach it.",
        { cause: new Error(`${file} is attached to ${devices.map(({ name }) => name).join(", ")}`) },
      );
    if (!devices[0]?.isGoing) return devices[0]?.name;
    if (performance.now() > until)
      throw new AppError("backend_failed", "The workspace's disk is still in use on the server. Try again.");
    await sleep(LOOK_AGAIN_MS, undefined, { signal });
  }
}

/** Attaches the file to a device. Not safe to run concurrently, because the file could get two devices. */
export async function attachDevice(file: string, signal: AbortSignal): Promise<string> {
  const attach = (...more: string[]) =>
    runCommand("losetup", ["--find", "--show", "--nooverlap", ...more, file], { signal });
  // Direct I/O bypasses the host's page cache, which would cache everything twice. Not every file system
  // supports direct I/O.
  return (await attach("--direct-io=on").catch(() => attach())).trim();
}

/** Detaches the file's devices. A mounted device becomes free when it is unmounted. */
export async function detachDevices(file: string, signal: AbortSignal): Promise<void> {
  for (const { name } of await devicesOf(file, signal))
    await runCommand("losetup", ["--detach", name], { signal });
}

/** True if the device is mounted anywhere on the machine, even where this process cannot see it. */
export async function isMounted(device: string): Promise<boolean> {
  try {
    const file = await open(device, constants.O_RDONLY | constants.O_EXCL);
    await file.close();
    return false;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EBUSY") return true;
    throw error;
  }
}

/** Creates or replaces the link atomically. */
export async function pointTo(device: string, link: string): Promise<void> {
  if ((await readlink(link).catch(() => undefined)) === device) return;
  const draft = `${link}.new`;
  await rm(draft, { force: true });
  await symlink(device, draft);
  await rename(draft, link);
}

async function devicesOf(file: string, signal: AbortSignal): Promise<Device[]> {
  const columns = ["--noheadings", "--raw", "--output", "NAME,AUTOCLEAR"];
  const printed = await runCommand("losetup", ["--associated", file, ...columns], { signal });
  const lines = printed.split("\n").filter((line) => line !== "");
  return lines.map((line) => ({ name: line.split(" ")[0] ?? "", isGoing: line.endsWith(" 1") }));
}
