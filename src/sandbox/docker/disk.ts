// Limits the size of a workspace. A workspace is a Docker volume. The engine's location decides how its size can be
// limited.

import type { ExecOptions, ExecOutput, ExecResult } from "../../agent/core/backend.ts";
import { AppError, messageOf } from "../../agent/core/errors.ts";
import type { Stream } from "../../agent/core/stream.ts";
import type { Logger } from "../../lib/logger.ts";
import { randomId } from "../../lib/random-id.ts";
import { quote, type ScriptRunner } from "../shell/script.ts";
import type { Shell } from "../shell/shell.ts";
import type { DockerClient, VolumeInfo } from "./engine.ts";
import { EngineError } from "./engine-error.ts";
import { labelOf } from "./identity.ts";
import type { LoopDisks } from "./loop-disks/index.ts";

/** The default deadline of disk operations, in milliseconds. */
const PATIENCE_MS = 60_000;
/** With `discard`, space that is freed in a workspace is returned to the host immediately. */
const MOUNT_OPTIONS = "nosuid,nodev,noatime,discard";

export interface Disk {
  /** The kind of disk for new workspaces. An existing workspace keeps its kind (see `isCapped`). */
  readonly kind: DiskKind;
  /**
   * Creates the volume `id`, or makes an existing one mountable. Call it before a container is created and before it is
   * started. Safe to repeat, even from several processes. Grows a workspace where possible, but never shrinks it.
   * Throws `backend_failed` or the engine's error.
   */
  prepare(
    id: string,
    bytes: number,
    labels: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void>;
  /** True if the system limits the size of this existing workspace. */
  isCapped(id: string, signal: AbortSignal): Promise<boolean>;
  /**
   * Frees the workspace's resources on the host after its container has stopped or been removed. Keeps the
   * files.
   */
  release(id: string, signal?: AbortSignal): Promise<void>;
  /** Deletes the files. Throws 409 while a container exists. */
  remove(id: string, signal?: AbortSignal): Promise<void>;
  /** Lists the workspaces that have files. Labels are empty if the volume was removed but its files remain. */
  list(signal?: AbortSignal): Promise<WorkspaceFiles[]>;
}

type WorkspaceFiles = Pick<VolumeInfo, "labels"> & { readonly id: string };

export type DiskClient = ProbedClient & Pick<DockerClient, "inspectVolume" | "listVolumes">;

interface DiskOptions {
  /** The folder for files of the kind `loop`. All processes on a machine use the same folder. */
  readonly folder: string;
  readonly deployment: string;
  /** The prefix of the link names for disks of the kind `loop`. */
  readonly mark: string;
  readonly logger: Logger;
}

/**
 * Finds out which kinds of disk the engine supports. Throws the engine's error if the engine is unreachable.
 */
export async function openDisk(engine: DiskClient, options: DiskOptions): Promise<Disk> {
  const { deployment, logger } = options;
  const candidates = await loopCandidates(options);
  const { kind, loops, why } = await findDiskKind(engine, candidates, AbortSignal.timeout(PATIENCE_MS));
  if (why !== undefined) logger.warn({ why }, "workspaces are limited only by checking their size");

  const kindOf = ({ options: { device, size } }: VolumeInfo, id: string): DiskKind => {
    if (device === undefined) return size === undefined ? "watch" : "quota";
    if (loops?.linkOf(id) !== device) throw isElsewhere();
    return "loop";
  };

  const driverOptions = (id: string, bytes: number): Record<string, string> => {
    if (kind === "quota") return { size: `${bytes}` };
    return kind === "loop" && loops ? { type: "ext4", device: loops.linkOf(id), o: MOUNT_OPTIONS } : {};
  };

  return {
    kind,
    async prepare(id, bytes, labels, signal) {
      const volume = await engine.inspectVolume(id, signal);
      const its = volume ? kindOf(volume, id) : kind;
      if (its === "loop") {
        // The file is created before the volume and deleted after it.
        if (!loops || (volume && !(await loops.has(id)))) throw isElsewhere();
        await loops.attach(id, bytes, signal);
      }
      if (!volume) await engine.createVolume(id, { ...labels }, driverOptions(id, bytes), signal);
      else if (its === "quota" && Number(volume.options.size) < bytes)
        logger.warn({ sandbox: id }, "a workspace keeps its size because the engine cannot change it");
    },
    async isCapped(id, signal) {
      const { device, size } = (await engine.inspectVolume(id, signal))?.options ?? {};
      return device !== undefined || size !== undefined;
    },
    async release(id, signal = AbortSignal.timeout(PATIENCE_MS)) {
      await loops?.detach(id, signal);
    },
    async remove(id, signal = AbortSignal.timeout(PATIENCE_MS)) {
      await engine.removeVolume(id, signal);
      await loops?.erase(id, signal);
    },
    async list(signal) {
      const volumes = await engine.listVolumes(labelOf(deployment), signal);
      const found = new Map(volumes.map(({ name, labels }) => [name, labels]));
      for (const id of (await loops?.list()) ?? []) if (!found.has(id)) found.set(id, {});
      return [...found].map(([id, labels]) => ({ id, labels }));
    },
  };
}

async function loopCandidates({ folder, mark, logger }: DiskOptions): Promise<LoopDisks[]> {
  if (process.getuid?.() !== 0) return [];
  const { linkFolders, loopDisks } = await import("./loop-disks/index.ts");
  const folders = await linkFolders(mark);
  return folders.map((links) => loopDisks({ folder, links, logger }));
}

const isElsewhere = () =>
  new AppError(
    "backend_failed",
    "The files of this workspace belong to another server. Use a server that is root on the engine's machine and has the same data folder and deployment name.",
  );

/**
 * `quota`: the engine's storage limits the size of a volume. `loop`: a volume is a file system with a fixed size. Both
 * limits are hard. `watch`: the server checks the size and ends commands that exceed it.
 */
type DiskKind = "quota" | "loop" | "watch";

type ProbedClient = Pick<
  DockerClient,
  "create" | "remove" | "createVolume" | "removeVolume" | "securityOptions"
>;

const PROBE_BYTES = 16 * 1024 ** 2;

interface FoundKind {
  readonly kind: DiskKind;
  /** Manages all workspaces of the kind `loop`, including those from earlier servers. */
  readonly loops: LoopDisks | undefined;
  /** The reason why no better kind is available. */
  readonly why?: string;
}

/** Tries each kind once with a small volume, best first. Throws the engine's error if the engine is unreachable. */
async function findDiskKind(
  engine: ProbedClient,
  candidates: readonly LoopDisks[],
  signal: AbortSignal,
): Promise<FoundKind> {
  const probe = `skein-probe-${randomId()}`;
  const [first] = candidates;
  if (await hasQuota(engine, probe, signal)) return { kind: "quota", loops: first };
  let why = "the server is not root on a Linux machine";
  for (const loops of candidates) {
    const obstacle = await findObstacle(engine, loops, probe, signal);
    if (obstacle === undefined) return { kind: "loop", loops };
    why = obstacle;
  }
  return { kind: "watch", loops: first, why };
}

async function hasQuota(engine: ProbedClient, probe: string, signal: AbortSignal): Promise<boolean> {
  try {
    await engine.createVolume(probe, {}, { size: `${PROBE_BYTES}` }, signal);
    await engine.removeVolume(probe, signal);
    return true;
  } catch (error) {
    if (isAway(error)) throw error;
    return false;
  }
}

async function findObstacle(
  engine: ProbedClient,
  loops: LoopDisks,
  probe: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  // These options change users or labels in a container, so they would differ from those in a file system
  // that was created outside.
  const security = await engine.securityOptions(signal);
  const other = security.find((option) => /^name=(rootless|userns|selinux)/.test(option));
  if (other !== undefined) return `the engine runs with ${other.slice("name=".length)}`;
  try {
    await loops.attach(probe, PROBE_BYTES, signal);
    const link = loops.linkOf(probe);
    const isShared = (await sees(engine, link, signal)) && !(await sees(engine, `${link}-nowhere`, signal));
    return isShared ? undefined : "the engine does not share this machine's files";
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return messageOf(error.cause ?? error);
  } finally {
    await loops.erase(probe, signal).catch(() => {});
  }
}

/** True if the engine sees the path. An engine checks mounts before the image when it creates a container. */
async function sees(engine: ProbedClient, path: string, signal: AbortSignal): Promise<boolean> {
  const mount = { Type: "bind" as const, Source: path, Target: "/probe", ReadOnly: true };
  const spec = { Image: "skein.invalid/probe", HostConfig: { Mounts: [mount] } };
  try {
    await engine.remove(await engine.create(`skein-probe-${randomId()}`, spec, signal), signal);
    return true;
  } catch (error) {
    if (isAway(error)) throw error;
    return error instanceof EngineError && error.status === 404;
  }
}

const isAway = (error: unknown) => error instanceof EngineError && error.status === 0;

/**
 * The number of milliseconds between two checks. Commands can exceed a workspace's size by as much as they can
 * write in that time.
 */
const CHECK_EVERY_MS = 2000;
const KIB = 1024;

/** Runs a command and ends it if the workspace becomes full. */
export async function* execWatched(
  { shell, diskWatch }: { shell: Shell; diskWatch: DiskWatch | undefined },
  command: string,
  options: ExecOptions,
): Stream<ExecResult, ExecOutput> {
  if (!diskWatch) return yield* shell.exec(command, options);
  using watched = diskWatch.follow(options.signal);
  const result = yield* shell.exec(command, { ...options, signal: watched.signal });
  return watched.isFull ? { ...result, ended: "disk-limit" } : result;
}

interface DiskWatchOptions {
  readonly shell: Pick<ScriptRunner, "runOnce">;
  readonly workdir: string;
  /** The size limit of the workspace, in bytes. */
  readonly bytes: number;
}

interface WatchedCommand extends Disposable {
  /** Aborts when the caller's signal aborts, or when the workspace is full. */
  readonly signal: AbortSignal;
  /** True if the command was aborted because the workspace is full. */
  readonly isFull: boolean;
}

export class DiskWatch {
  readonly #options: DiskWatchOptions;
  #checkedAt = Number.NEGATIVE_INFINITY;

  constructor(options: DiskWatchOptions) {
    this.#options = options;
  }

  /** Throws `backend_failed` if the workspace is full. Call it before each write. */
  async assertRoom(signal: AbortSignal): Promise<void> {
    if (performance.now() - this.#checkedAt < CHECK_EVERY_MS) return;
    if (await this.#isFull(signal))
      throw new AppError("backend_failed", "Cannot write: the disk is full. Remove files.");
    this.#checkedAt = performance.now();
  }

  /** Checks the size periodically while a command runs, until disposed. */
  follow(signal: AbortSignal): WatchedCommand {
    const full = new AbortController();
    const both = AbortSignal.any([signal, full.signal]);
    const check = async () => {
      if (await this.#isFull(both).catch(() => false)) full.abort();
    };
    const timer = setInterval(() => void check(), CHECK_EVERY_MS);
    return {
      signal: both,
      get isFull() {
        return full.signal.aborted;
      },
      [Symbol.dispose]: () => clearInterval(timer),
    };
  }

  async #isFull(signal: AbortSignal): Promise<boolean> {
    const { shell, workdir, bytes } = this.#options;
    const script = `set -- $(du -skx ${quote(workdir)}); r="0 $1"`;
    const { fields } = await shell.runOnce({ script }, signal);
    return Number(fields[1]) * KIB > bytes;
  }
}
