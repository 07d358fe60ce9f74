// Limits each process to a share of a processor, using Linux control groups (version 1).

import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const GROUPS = "/sys/fs/cgroup/cpu";
/** Short, so a process that has used its share continues soon. */
const PERIOD_US = 20_000;

/**
 * From now on, each of the processes, with all its threads, gets at most this share of one processor. Throws if control
 * groups cannot be created. They are removed when this process ends.
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

/** Only an empty group can be removed, and a killed process may take a moment to disappear. */
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
