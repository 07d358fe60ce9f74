// Measures the resources that a process and its descendants have used so far, as Linux counts them in /proc.

import { readdirSync, readFileSync } from "node:fs";

/**
 * Returns the CPU time of all threads in ms, with the precision of the scheduler's clock. Excludes threads that have
 * ended. Throws if the process does not exist.
 */
export function cpuMsOf(pid: number): number {
  const threads = treeOf(pid).flatMap(threadsOf);
  // The `schedstat` of a process covers only its main thread, so the threads are summed.
  const nanoseconds = threads.map((thread) =>
    Number.parseInt(readFileSync(`${thread}/schedstat`, "utf8"), 10),
  );
  return nanoseconds.reduce((sum, each) => sum + each, 0) / 1e6;
}

/**
 * Returns how long the main thread was ready to run but waited for a processor, in ms. Throws if the process does not
 * exist.
 */
export function waitedMsOf(pid: number): number {
  const [, waited] = readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ");
  return Number(waited) / 1e6;
}

/** Returns the process and all of its descendants that are still running. */
export function treeOf(pid: number): number[] {
  const children = threadsOf(pid).flatMap((thread) =>
    readFileSync(`${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number),
  );
  return [pid, ...children.flatMap(treeOf)];
}

const threadsOf = (pid: number) => readdirSync(`/proc/${pid}/task`).map((tid) => `/proc/${pid}/task/${tid}`);
