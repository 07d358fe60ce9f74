// Holds processes to a share of a processor each, with the control groups of Linux (version 1).

import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const GROUPS = "/sys/fs/cgroup/cpu";
/** Short, so that a process which has used its share of one continues soon. */
const PERIOD_US = 20_000;

/**
 * From now on each of the processes, with all its threads, gets at most this share of one processor. Throws where groups
 * cannot be made. They are removed when this process ends.
 */
export function holdTo(share: number, pids: readonly number[]): void {
  for (const pid of pids) {
    const group = join(GROUPS, `skein-bench-${pid}`);
    try {
      mkdirSync(group);
      process.once("exit", () => remove(group));
      writeFileSync(join(group, "cpu.cfs_period_us"), String(PERIOD_US));
      writeFileSync(join(group, "cpu.cfs_quota_us"), String(PERIOD_US * share));
      writeFileSync(join(group, "cgroup.procs"), String(pid));
    } catch (error) {
      throw new Error(
        `A process cannot be held to its share of a processor: it takes root and ${GROUPS}, control groups of version 1. ${error}`,
      );
    }
  }
}

/** A group goes only when nothing is in it, and a process that was killed may need a moment to be gone. */
function remove(group: string): void {
  for (let attempt = 0; attempt < 100; attempt++) {
    try {
      rmdirSync(group);
      return;
    } catch {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    }
  }
}
