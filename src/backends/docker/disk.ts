// What a workspace may hold. It is a Docker volume; how it is held to its size depends on where the engine runs.

import type { ExecOptions, ExecOutput, ExecResult } from "../../core/backend.ts";
import { AppError, messageOf } from "../../core/errors.ts";
import type { Stream } from "../../core/stream.ts";
import type { Logger } from "../../lib/logger.ts";
import { randomId } from "../../lib/random-id.ts";
import { quote, type ScriptRunner } from "../shell/script.ts";
import type { Shell } from "../shell/shell.ts";
import { type DockerClient, EngineError, type VolumeInfo } from "./engine.ts";
import { labelOf } from "./identity.ts";
import { type LoopDisks, linkFolders, loopDisks } from "./loop-disks.ts";

/** What `losetup` and the like are given when the caller sets no end. */
const PATIENCE_MS = 60_000;
/** Space that is freed in a workspace is free on the host at once. */
const MOUNT_OPTIONS = "nosuid,nodev,noatime,discard";

export interface Disk {
  /** Of new workspaces. One that was made otherwise stays what it is: see `isCapped`. */
  readonly kind: DiskKind;
  /**
   * Before a container is made and before it is started: then the volume `id` is there and can be mounted. Safe to
   * repeat, also from several processes. A larger size than before is given where that is possible; a smaller one
   * has no effect. Throws `backend_failed`, or what the engine says.
   */
  prepare(
    id: string,
    bytes: number,
    labels: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void>;
  /** Whether the size of a workspace that is there is limited by the system. */
  isCapped(id: string, signal: AbortSignal): Promise<boolean>;
  /** After its container is stopped or removed: nothing of the host is held any more. The files stay. */
  release(id: string, signal?: AbortSignal): Promise<void>;
  /** Deletes the files for good, and all that belonged to them. Throws 409 while there is a container. */
  remove(id: string, signal?: AbortSignal): Promise<void>;
  /** The workspaces that have files. Without labels when somebody removed the volume, but the files are there. */
  list(signal?: AbortSignal): Promise<WorkspaceFiles[]>;
}

export type WorkspaceFiles = Pick<VolumeInfo, "labels"> & { readonly id: string };

export type DiskClient = ProbedClient & Pick<DockerClient, "inspectVolume" | "listVolumes">;

export interface DiskOptions {
  /** The server's own folder. The same for all processes on one machine. */
  readonly dataDir: string;
  readonly deployment: string;
  readonly logger: Logger;
}

/** Finds out what the engine can do. Throws what it says when it is away. */
export async function openDisk(engine: DiskClient, options: DiskOptions): Promise<Disk> {
  const { deployment, logger } = options;
  const candidates = await loopCandidates(options);
  const { kind, loops, why } = await findDiskKind(engine, candidates, AbortSignal.timeout(PATIENCE_MS));
  if (why !== undefined) logger.warn({ why }, "nothing but a watch holds workspaces to their size");

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
        // The file is made before the volume and deleted after it.
        if (!loops || (volume && !(await loops.has(id)))) throw isElsewhere();
        await loops.attach(id, bytes, signal);
      }
      if (!volume) await engine.createVolume(id, { ...labels }, driverOptions(id, bytes), signal);
      else if (its === "quota" && Number(volume.options.size) < bytes)
        logger.warn({ sandbox: id }, "a workspace keeps its size: the engine cannot change it");
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

async function loopCandidates({ dataDir, deployment, logger }: DiskOptions): Promise<LoopDisks[]> {
  if (process.getuid?.() !== 0) return [];
  const folders = await linkFolders(deployment);
  return folders.map((links) => loopDisks({ dataDir, links, logger }));
}

const isElsewhere = () =>
  new AppError(
    "backend_failed",
    "The files of this workspace are kept by another server. It must be one that is root on the engine's machine, with the same data folder and the same name of the deployment.",
  );

// How workspaces can be held to their size on an engine: found out by doing it once, on a small scale.
/**
 * `quota`: the engine's storage counts what is in a volume; `loop`: a volume is a file system of its own. With
 * both, full is full. `watch`: nothing holds a workspace to its size but who watches it.
 */
export type DiskKind = "quota" | "loop" | "watch";

export type ProbedClient = Pick<
  DockerClient,
  "create" | "remove" | "createVolume" | "removeVolume" | "securityOptions"
>;

const PROBE_BYTES = 16 * 1024 ** 2;

export interface FoundKind {
  readonly kind: DiskKind;
  /** Those to use for workspaces that are, or were, of that kind. */
  readonly loops: LoopDisks | undefined;
  /** What is in the way of a better kind. */
  readonly why?: string;
}

/** The first of `candidates` that works is taken. Throws what the engine says when it is away. */
export async function findDiskKind(
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
  // Then users, or labels, are not the same in a container as in a file system that comes from outside.
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

/** Whether a path is there for the engine. It looks when it is asked for a container, before it looks for the image. */
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

// A workspace that the system does not hold to its size is looked at instead. It may grow past its size between two
// looks, by as much as can be written in that time.
const LOOK_EVERY_MS = 2000;
const KIB = 1024;

/** Runs a command, and ends it when the workspace holds too much. */
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

export interface DiskWatchOptions {
  readonly shell: Pick<ScriptRunner, "runOnce">;
  readonly workdir: string;
  /** What the workspace may hold. */
  readonly bytes: number;
}

export interface WatchedCommand extends Disposable {
  /** Aborts with the caller's, or when the workspace holds too much. */
  readonly signal: AbortSignal;
  /** Whether it was aborted because the workspace holds too much. */
  readonly isFull: boolean;
}

export class DiskWatch {
  readonly #options: DiskWatchOptions;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(options: DiskWatchOptions) {
    this.#options = options;
  }

  /** Before something is written. Throws `backend_failed` when the workspace is full. */
  async assertRoom(signal: AbortSignal): Promise<void> {
    if (performance.now() - this.#lookedAt < LOOK_EVERY_MS) return;
    if (await this.#isFull(signal))
      throw new AppError("backend_failed", "Nothing can be written: the disk is full. Remove files.");
    this.#lookedAt = performance.now();
  }

  /** While a command runs. Its end disposes of it. */
  follow(signal: AbortSignal): WatchedCommand {
    const full = new AbortController();
    const both = AbortSignal.any([signal, full.signal]);
    const look = async () => {
      if (await this.#isFull(both).catch(() => false)) full.abort();
    };
    const timer = setInterval(() => void look(), LOOK_EVERY_MS);
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
