// A sandbox's container: its specification, and how to get from any state to a single running container with that
// specification. The specification isolates any image by default.
//
// Other processes and people may change the container at the same time. Each step therefore inspects, does one thing,
// and inspects again.

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { AppError, messageOf } from "../../agent/core/errors.ts";
import { backoff } from "../../lib/backoff.ts";
import { HOME } from "../shell/prelude.ts";
import type { ContainerInfo, ContainerSpec, ExecSpec } from "./engine.ts";
import { EngineError, toAppError } from "./engine-error.ts";
import type { UnplacedSandbox } from "./engines.ts";
import type { Host } from "./host.ts";
import { ERRAND, labelsOf, SPEC } from "./identity.ts";
import { type DockerOptions, SHM_BYTES } from "./options.ts";

/** How long calls to an unreachable or conflicting engine are retried, in milliseconds. */
const RETRY_MS = 12_000;
const RETRY_BACKOFF = { base: 20, cap: 1000 };

export interface ContainerRequest {
  readonly sandbox: UnplacedSandbox;
  readonly options: DockerOptions;
}

/**
 * Resolves with the id of the running container. Throws `backend_failed`, `backend_refused`, or `unavailable` when the
 * engine is unreachable.
 */
export async function ensureContainer(
  host: Host,
  request: ContainerRequest,
  signal: AbortSignal,
): Promise<string> {
  const { sandbox, options } = request;
  const network = await host.networks.prepare(engineNetwork(options), signal);
  const labels = labelsOf(host.deployment, sandbox);
  const spec = specOf({ options, volume: sandbox.id, network, labels });
  let deadline = performance.now() + RETRY_MS;
  let failures = 0;
  let wasPulled = false;

  const step = async (): Promise<string | undefined> => {
    const found = await host.engine.inspect(sandbox.id, signal);
    if (!found) {
      await host.disk.prepare(sandbox.id, options.disk, labels, signal);
      await host.engine.create(sandbox.id, spec, signal);
      return undefined;
    }
    if (found.labels[SPEC] !== spec.Labels?.[SPEC]) {
      host.logger.info({ sandbox: sandbox.id }, "replacing a container whose specification has changed");
      await host.engine.remove(found.id, signal);
      return undefined;
    }
    if (found.status === "running") return found.id;
    await startExisting(host, request, found, signal);
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
        await pull(host, request, signal);
        deadline = performance.now() + RETRY_MS;
        continue;
      }
      if (!isTransient(error) || performance.now() > deadline) throw toAppError(error);
      host.logger.warn({ sandbox: sandbox.id, err: error }, "the Docker engine refused a request; retrying");
      await sleep(backoff(failures++, RETRY_BACKOFF), undefined, { signal });
    }
  }
}

async function startExisting(
  { engine, disk, deployment }: Host,
  { sandbox, options }: ContainerRequest,
  found: ContainerInfo,
  signal: AbortSignal,
) {
  if (found.status === "paused") return engine.unpause(found.id, signal);
  if (found.status === "removing" || found.status === "dead") return engine.remove(found.id, signal);
  await disk.prepare(sandbox.id, options.disk, labelsOf(deployment, sandbox), signal);
  try {
    await engine.start(found.id, signal);
  } catch (error) {
    // Removes a container that cannot be started.
    if (error instanceof EngineError && !isTransient(error)) await engine.remove(found.id, signal);
    throw error;
  }
}

async function pull({ engine, logger }: Host, { options }: ContainerRequest, signal: AbortSignal) {
  const { image } = options;
  logger.info({ image }, "pulling an image");
  try {
    await engine.pull(image, signal);
  } catch (cause) {
    signal.throwIfAborted();
    throw new AppError(
      "backend_failed",
      `The Docker engine does not have the image \`${image}\` and cannot pull it: ${messageOf(cause)}`,
      { cause, details: { image } },
    );
  }
}

const isMissingImage = ({ status, message }: EngineError) => status === 404 && /no such image/i.test(message);

/** True if a retry may succeed: another process changed the container, or the engine was briefly unreachable. */
const isTransient = ({ status, message }: EngineError) =>
  status === 0 || status === 409 || status === 503 || (status === 404 && /no such container/i.test(message));

/** Pid 1 does not run as the tenant's user, so `kill -9 -1` in the sandbox cannot reach it. */
const INIT_USER = "65534:65534";
const TENANT = "1000:1000";
const FOREVER = ["sleep", "2147483647"];
/** Even an empty file takes one page of memory, so a tmpfs is limited to one file per page. */
const BYTES_PER_FILE = 4096;
/** Combines the masked paths of all engine versions with files that reveal the disks of other sandboxes. */
const MASKED = [
  "/proc/acpi",
  "/proc/asound",
  "/proc/interrupts",
  "/proc/kcore",
  "/proc/keys",
  "/proc/latency_stats",
  "/proc/sched_debug",
  "/proc/scsi",
  "/proc/timer_list",
  "/proc/timer_stats",
  "/sys/firmware",
  "/sys/devices/virtual/powercap",
  "/proc/diskstats",
  "/proc/partitions",
  "/sys/devices/virtual/block",
];

interface SpecOptions {
  readonly options: DockerOptions;
  /** The volume's name. */
  readonly volume: string;
  /** The name or id of the network, as known to the engine. */
  readonly network: string;
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * Builds the specification. Other processes recognize a matching container by a label with the
 * specification's hash.
 */
export function specOf({ options, volume, network, labels }: SpecOptions): ContainerSpec {
  const { image, workdir, memory, cpus, pids, disk, tmp, runtime } = options;
  const spec = {
    Image: image,
    Entrypoint: [],
    Cmd: FOREVER,
    User: INIT_USER,
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
      // Frees a shared memory segment when the last process that uses it has ended.
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

/** Specifies a container that makes the tenant the owner of the workspace. */
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

/** Specifies the tenant's shell. It inherits nothing from the server's environment. */
export function shellSpec({ workdir }: DockerOptions): ExecSpec {
  return {
    command: ["/bin/sh"],
    user: TENANT,
    folder: workdir,
    environment: [
      // HOME is in the workspace, which is the only place that outlives the container and has enough space.
      `HOME=${workdir}/${HOME}`,
      `WORKSPACE=${workdir}`,
      "TMPDIR=/tmp",
      "LANG=C.UTF-8",
      "TERM=dumb",
      "PAGER=cat",
      "PS1=",
      "ENV=",
      "GIT_TERMINAL_PROMPT=0",
    ],
  };
}

/** The shell of a relay, which the tenant can neither signal nor trace. It needs no folder. */
export const RELAY_SHELL: ExecSpec = {
  command: ["/bin/sh"],
  user: "65533:65533",
  folder: "/",
  environment: ["ENV=", "PS1="],
};

/**
 * Returns the network for the engine. A container with a list of hosts has no network, because a relay
 * carries its connections.
 */
const engineNetwork = ({ network }: DockerOptions) => (typeof network === "string" ? network : "none");

const hashOf = (spec: object) => createHash("sha256").update(JSON.stringify(spec)).digest("hex").slice(0, 16);
