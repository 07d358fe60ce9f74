// What a sandbox's container is made from: shut off by default, whatever the image says.

import { createHash } from "node:crypto";
import type { ContainerSpec, ExecSpec } from "./engine-info.ts";
import { ERRAND, SPEC } from "./identity.ts";
import { type DockerOptions, SHM_BYTES } from "./options.ts";

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
