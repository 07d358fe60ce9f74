// From whatever there is on the engine to one running container of the right specification.
//
// Every step bears that another process, or a person, does the same or the opposite meanwhile: it looks, does one
// thing, and looks again.

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { AppError, messageOf } from "../../core/errors.ts";
import type { Sandbox } from "../ledger.ts";
import { type ContainerInfo, type ContainerSpec, EngineError, type ExecSpec, toAppError } from "./engine.ts";
import type { Host } from "./host.ts";
import { ERRAND, labelsOf, SPEC } from "./identity.ts";
import { type DockerOptions, SHM_BYTES } from "./options.ts";

/** How long an engine that is away, or in disagreement with us, is given. */
const PATIENCE_MS = 12_000;
const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 1000;

export interface Wanted {
  readonly sandbox: Sandbox;
  readonly options: DockerOptions;
}

/** Resolves with the container's id. Throws `backend_failed` or `backend_refused` with what is wrong, `unavailable` when the engine is away. */
export async function ensureContainer(host: Host, wanted: Wanted, signal: AbortSignal): Promise<string> {
  const { sandbox, options } = wanted;
  const network = await host.networks.prepare(options.network, signal);
  const labels = labelsOf(host.deployment, sandbox);
  const spec = specOf({ options, volume: sandbox.id, network, labels });
  let deadline = performance.now() + PATIENCE_MS;
  let pause = FIRST_PAUSE_MS;
  let wasPulled = false;

  const step = async (): Promise<string | undefined> => {
    const found = await host.engine.inspect(sandbox.id, signal);
    if (!found) {
      await host.disk.prepare(sandbox.id, options.disk, labels, signal);
      await host.engine.create(sandbox.id, spec, signal);
      return undefined;
    }
    if (found.labels[SPEC] !== spec.Labels?.[SPEC]) {
      host.logger.info(
        { sandbox: sandbox.id },
        "replacing a container that is made from another specification",
      );
      await host.engine.remove(found.id, signal);
      return undefined;
    }
    if (found.status === "running") return found.id;
    await raise(host, wanted, found, signal);
    return undefined;
  };

  for (;;) {
    try {
      const containerId = await step();
      if (containerId !== undefined) return containerId;
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      if (isMissingImage(error) && !wasPulled) {
        wasPulled = true;
        await pull(host, wanted, signal);
        deadline = performance.now() + PATIENCE_MS;
        continue;
      }
      if (!isPassing(error) || performance.now() > deadline) throw toAppError(error);
      host.logger.warn({ sandbox: sandbox.id, err: error }, "the Docker engine did not do as it was asked");
      await sleep(pause, undefined, { signal });
      pause = Math.min(pause * 2, MAX_PAUSE_MS);
    }
  }
}

async function raise(
  { engine, disk, deployment }: Host,
  { sandbox, options }: Wanted,
  found: ContainerInfo,
  signal: AbortSignal,
) {
  if (found.status === "paused") return engine.unpause(found.id, signal);
  if (found.status === "removing" || found.status === "dead") return engine.remove(found.id, signal);
  await disk.prepare(sandbox.id, options.disk, labelsOf(deployment, sandbox), signal);
  try {
    await engine.start(found.id, signal);
  } catch (error) {
    // One that cannot be started is not left lying about.
    if (error instanceof EngineError && !isPassing(error)) await engine.remove(found.id, signal);
    throw error;
  }
}

async function pull({ engine, logger }: Host, { sandbox, options }: Wanted, signal: AbortSignal) {
  const { image } = options;
  logger.info({ image }, "pulling an image");
  try {
    await engine.pull(image, signal);
  } catch (cause) {
    signal.throwIfAborted();
    const err = new AppError(
      "backend_failed",
      `The image \`${image}\` is not on the Docker engine, and cannot be pulled: ${messageOf(cause)}`,
      { cause },
    );
    const { id, owner, name: backend } = sandbox;
    logger.warn({ sandbox: id, ...owner, backend, image, code: err.code, err }, "an image cannot be pulled");
    throw err;
  }
}

const isMissingImage = ({ status, message }: EngineError) => status === 404 && /no such image/i.test(message);

/** Another look may find things different: somebody else was at it, or the engine is away for a moment. */
const isPassing = ({ status, message }: EngineError) =>
  status === 0 || status === 409 || status === 503 || (status === 404 && /no such container/i.test(message));

// What a sandbox's container is made from: shut off by default, whatever the image says.
/** Pid 1 belongs to somebody else than what the user runs: `kill -9 -1` from inside does not reach it. */
const KEEPER = "65534:65534";
const TENANT = "1000:1000";
const FOREVER = ["sleep", "2147483647"];
/** A file may be empty, and still takes memory as long as it is there: no more of them than there are pages. */
const BYTES_PER_FILE = 4096;
/** The engine's own list, as long as any version has it, and what tells of other sandboxes' disks. */
const MASKED = [
  ...["/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats"],
  ...["/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/firmware"],
  ...["/sys/devices/virtual/powercap", "/proc/diskstats", "/proc/partitions", "/sys/devices/virtual/block"],
];

export interface SpecOptions {
  readonly options: DockerOptions;
  /** The volume's name. */
  readonly volume: string;
  /** As the engine calls it. */
  readonly network: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** With the label by which another process sees whether a container is made from the same. */
export function specOf({ options, volume, network, labels }: SpecOptions): ContainerSpec {
  const { image, workdir, memory, cpus, pids, disk, tmp, runtime } = options;
  const spec = {
    Image: image,
    Entrypoint: [],
    Cmd: FOREVER,
    User: KEEPER,
    WorkingDir: workdir,
    Hostname: "sandbox",
    HostConfig: {
      ...confined(volume, workdir),
      NetworkMode: network,
      CapDrop: ["ALL"],
      ReadonlyRootfs: true,
      Memory: memory,
      MemorySwap: memory,
      NanoCpus: Math.round(cpus * 1e9),
      PidsLimit: pids,
      Tmpfs: {
        "/tmp": `exec,uid=1000,gid=1000,${inMemory(tmp)}`,
        "/dev/shm": `noexec,${inMemory(SHM_BYTES)}`,
      },
      // What is shared in memory is gone with the last process that has it, and cannot fill the memory for good.
      Sysctls: { "kernel.shm_rmid_forced": "1" },
      MaskedPaths: MASKED,
      Ulimits: [
        { Name: "nofile", Soft: 1024, Hard: 4096 },
        { Name: "core", Soft: 0, Hard: 0 },
        { Name: "fsize", Soft: disk, Hard: disk },
      ],
      OomScoreAdj: 500,
      IpcMode: "private",
      ...(runtime === undefined ? {} : { Runtime: runtime }),
    },
  };
  return { ...spec, Labels: { ...labels, [SPEC]: hashOf(spec) } };
}

const inMemory = (bytes: number) =>
  `rw,nosuid,nodev,mode=1777,size=${bytes},nr_inodes=${Math.floor(bytes / BYTES_PER_FILE)}`;

/** A container that gives the workspace to the user, for an image whose own folder belongs to somebody else. */
export function chownSpec({ options, volume, labels }: Omit<SpecOptions, "network">): ContainerSpec {
  const { image, workdir } = options;
  return {
    Image: image,
    Entrypoint: [],
    Cmd: ["chown", TENANT, workdir],
    User: "0:0",
    NetworkDisabled: true,
    Labels: { ...labels, [ERRAND]: "chown" },
    HostConfig: {
      ...confined(volume, workdir),
      NetworkMode: "none",
      CapDrop: ["ALL"],
      CapAdd: ["CHOWN"],
      ReadonlyRootfs: true,
      PidsLimit: 16,
    },
  };
}

const confined = (volume: string, workdir: string) => ({
  Mounts: [{ Type: "volume" as const, Source: volume, Target: workdir }],
  SecurityOpt: ["no-new-privileges"],
  Init: true,
  LogConfig: { Type: "none", Config: {} },
  RestartPolicy: { Name: "no" as const },
});

/** A shell of the user's. It sees nothing of the server's environment. */
export function shellSpec({ workdir }: DockerOptions): ExecSpec {
  return {
    command: ["/bin/sh"],
    user: TENANT,
    folder: workdir,
    environment: [
      ...[`HOME=${workdir}`, `WORKSPACE=${workdir}`, "TMPDIR=/tmp", "LANG=C.UTF-8", "TERM=dumb", "PAGER=cat"],
      ...["PS1=", "ENV=", "GIT_TERMINAL_PROMPT=0"],
    ],
  };
}

const hashOf = (spec: object) => createHash("sha256").update(JSON.stringify(spec)).digest("hex").slice(0, 16);
