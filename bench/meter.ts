// What a process and everything it started has used so far, as Linux counts it in /proc.

import { readdirSync, readFileSync } from "node:fs";

/**
 * CPU time of all threads in ms, exact to the scheduler's clock. What threads used that have ended is not in it.
 * Throws when the process does not exist.
 */
export function cpuMsOf(pid: number): number {
  const threads = treeOf(pid).flatMap(threadsOf);
  // `schedstat` of a process is that of its main thread alone, so the threads are summed.
  const nanoseconds = threads.map((thread) =>
    Number.parseInt(readFileSync(`${thread}/schedstat`, "utf8"), 10),
  );
  return nanoseconds.reduce((sum, each) => sum + each, 0) / 1e6;
}

/** How long the main thread has been ready to run and waited for a processor, in ms. Throws when there is no such process. */
export function waitedMsOf(pid: number): number {
  const [, waited] = readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ");
  return Number(waited) / 1e6;
}

/** The process and everything it started that still runs. */
export function treeOf(pid: number): number[] {
  const children = threadsOf(pid).flatMap((thread) =>
    readFileSync(`${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number),
  );
  return [pid, ...children.flatMap(treeOf)];
}

const threadsOf = (pid: number) => readdirSync(`/proc/${pid}/task`).map((tid) => `/proc/${pid}/task/${tid}`);
