// Workspaces as files with a file system of their own, each on a loop device that a Docker volume mounts.
//
// A device's number means nothing: after a restart of the host it may belong to another tenant's file. A volume
// therefore names a link, which lives in memory, so that it does not outlive the host's devices, and which is not
// there while its file is not attached. Every change of one workspace is made under a lock that all processes
// on the host respect: two devices on one file would destroy it.

import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { access, lstat, mkdir, open, readdir, readlink, rename, rm, statfs, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AppError } from "../../core/errors.ts";
import type { Logger } from "../../lib/logger.ts";
import { isFit, makeImage, mendImage, readImage } from "./disk-image.ts";
import { CommandFailed, runCommand, withLock } from "./host-command.ts";

/** What `statfs` calls a tmpfs. */
const IN_MEMORY = 0x01021994;

export interface LoopDisks {
  /** What the volume names as its device. */
  linkOf(id: string): string;
  /** Whether there is a file for it. */
  has(id: string): Promise<boolean>;
  /** The link can be mounted then, and holds at least `bytes`. Safe to repeat, also from several processes. */
  attach(id: string, bytes: number, signal: AbortSignal): Promise<void>;
  /** The file stays. What is still mounted goes on, and is let go of when it is unmounted. */
  detach(id: string, signal: AbortSignal): Promise<void>;
  /** For good. For one that is not mounted. */
  erase(id: string, signal: AbortSignal): Promise<void>;
  list(): Promise<string[]>;
}

export interface LoopDisksOptions {
  /** The server's own folder, for the files. */
  readonly dataDir: string;
  /** One of `linkFolders`. It stays, with its locks, until the machine restarts. */
  readonly links: string;
  readonly logger: Logger;
}

/** What the host refuses is thrown as `backend_failed`. */
export function loopDisks({ dataDir, links, logger }: LoopDisksOptions): LoopDisks {
  const folder = join(dataDir, "volumes");
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

  /** The link goes first: at no time it leads to a device that may be somebody else's. */
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
      if (!state.isSound) logger.warn({ sandbox: id }, "a workspace's disk is damaged and is being mended");
      if (!mayStay) await mendImage(image, bytes, signal);
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
    ...{ linkOf, has },
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

/** Where the links of a deployment may be: in memory, so that they do not outlive the devices. Best first. */
export async function linkFolders(deployment: string): Promise<string[]> {
  const bases = await Promise.all(
    ["/run", "/dev/shm"].map(async (base) => {
      const stats = await statfs(base).catch(() => undefined);
      return stats?.type === IN_MEMORY ? base : undefined;
    }),
  );
  const name = hashOf(deployment).slice(0, 16);
  return bases.filter((base) => base !== undefined).map((base) => join(base, "skein", name));
}

/** Made where it is missing. Throws when another user of this machine may have a hand in it. */
async function ownFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const each of [dirname(folder), folder]) {
    const stats = await lstat(each);
    if (!stats.isDirectory() || stats.uid !== process.getuid?.() || (stats.mode & 0o022) !== 0)
      throw new Error(`${each} belongs to somebody else`);
  }
}

/** One of sixteen: a lock of its own for each workspace would leave a file behind for each. */
const lockOf = (id: string) => `.lock-${hashOf(id).charAt(0)}`;

const hashOf = (text: string) => createHash("sha256").update(text).digest("hex");

function diskError(cause: unknown): AppError {
  if (cause instanceof AppError) return cause;
  const message = `Something is wrong with the workspace's disk: ${reasonOf(cause)}.`;
  return new AppError("backend_failed", message, { cause });
}

function reasonOf(cause: unknown): string {
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  if (code === "ENOSPC" || /no space left/i.test(String(cause))) return "the server's disk is full";
  if (cause instanceof CommandFailed)
    return `\`${cause.program}\` failed on the server, whose log tells more`;
  return `the server's data folder cannot be used (${code ?? "unknown error"})`;
}

// Loop devices: files that the kernel presents as disks. Their numbers are handed out anew at will, so what belongs
// to a file is always asked for by the file.
/** How long a device that is given back may still be held by what had it mounted. */
const LET_GO_MS = 5000;
const LOOK_AGAIN_MS = 50;

interface Device {
  readonly name: string;
  /** It is given back already, and goes when it is unmounted. */
  readonly isGoing: boolean;
}

/** The one device of a file. Waits for one that is going. Throws `backend_failed` when there are two. */
export async function deviceOf(file: string, signal: AbortSignal): Promise<string | undefined> {
  for (const until = performance.now() + LET_GO_MS; ; ) {
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

/** Not safe beside itself: the file may end up on two devices. */
export async function attachDevice(file: string, signal: AbortSignal): Promise<string> {
  const attach = (...more: string[]) =>
    runCommand("losetup", ["--find", "--show", "--nooverlap", ...more, file], { signal });
  // Past the host's page cache, so that nothing is kept twice; not every file system allows it.
  return (await attach("--direct-io=on").catch(() => attach())).trim();
}

/** Those that are mounted go when they are unmounted. */
export async function detachDevices(file: string, signal: AbortSignal): Promise<void> {
  for (const { name } of await devicesOf(file, signal))
    await runCommand("losetup", ["--detach", name], { signal });
}

/** On the whole machine, whatever this process sees of its mounts. */
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

/** In one step, whatever the link led to before. */
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
