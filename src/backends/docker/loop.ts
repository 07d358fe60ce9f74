// Workspaces as files with a file system of their own, each on a loop device that a Docker volume mounts.
//
// A device's number means nothing: after a restart of the host it may belong to another tenant's file. A volume
// therefore names a link, which lives in memory, so that it does not outlive the host's devices, and which is not
// there while its file is not attached. Every change of one workspace is made under a lock that all processes
// on the host respect: two devices on one file would destroy it.

import { createHash } from "node:crypto";
import { access, lstat, mkdir, readdir, rm, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { AppError } from "../../core/errors.ts";
import type { Logger } from "../../lib/logger.ts";
import { CommandFailed, withLock } from "./host-command.ts";
import { isFit, makeImage, mendImage, readImage } from "./image.ts";
import { attachDevice, detachDevices, deviceOf, isMounted, pointTo } from "./loop-device.ts";

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
      throw inWords(error);
    }
  };

  /** The link goes first: at no time it leads to a device that may be somebody else's. */
  const letGo = async (id: string, signal: AbortSignal): Promise<void> => {
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
      await letGo(id, signal);
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
    await letGo(id, signal);
    await deviceOf(imageOf(id), signal);
    await rm(imageOf(id), { force: true });
  };

  return {
    ...{ linkOf, has },
    attach: (id, bytes, signal) => alone(id, signal, () => attach(id, bytes, signal)),
    async detach(id, signal) {
      if (await has(id)) await alone(id, signal, () => letGo(id, signal));
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

function inWords(cause: unknown): AppError {
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
