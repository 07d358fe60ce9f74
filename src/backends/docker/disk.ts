// What a workspace may hold. It is a Docker volume; how it is held to its size depends on where the engine runs.

import { AppError } from "../../core/errors.ts";
import type { Logger } from "../../lib/logger.ts";
import { type DiskKind, findDiskKind, type ProbedEngine } from "./disk-kind.ts";
import type { Engine } from "./engine.ts";
import type { VolumeInfo } from "./engine-info.ts";
import { labelOf } from "./identity.ts";
import { type LoopDisks, linkFolders, loopDisks } from "./loop.ts";

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

export type DiskEngine = ProbedEngine & Pick<Engine, "inspectVolume" | "listVolumes">;

export interface DiskOptions {
  /** The server's own folder. The same for all processes on one machine. */
  readonly dataDir: string;
  readonly deployment: string;
  readonly logger: Logger;
}

/** Finds out what the engine can do. Throws what it says when it is away. */
export async function openDisk(engine: DiskEngine, options: DiskOptions): Promise<Disk> {
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
