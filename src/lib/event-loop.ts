// Warns when a tick of the event loop takes long, because every request and run of the process has to wait for it.

import type { Logger } from "./logger.ts";

/** The number of milliseconds between two checks. A stall may appear to be shorter by this much. */
const CHECK_MS = 20;
/** The minimum number of milliseconds between two log lines. */
const PAUSE_MS = 5000;

export interface EventLoopWatch {
  /**
   * Records what begins now. If a stall follows, its log line contains the result of `what`. Otherwise, this costs
   * nothing.
   */
  begins(what: () => string | undefined): void;
  close(): void;
}

/**
 * The time that a starting process takes to load modules, and the tick length allowed during that time, in
 * milliseconds.
 */
const STARTING_MS = 5000;
const WHILE_STARTING_MS = 1000;

/**
 * `warnAfterMs` is the maximum length of a tick in milliseconds. With `isStarting`, the limit is higher while the
 * process starts. The caller must close it.
 */
export function watchEventLoop(warnAfterMs: number, logger: Logger, isStarting = false): EventLoopWatch {
  const started = isStarting ? performance.now() + STARTING_MS : 0;
  const mostAt = (time: number) => (time < started ? Math.max(warnAfterMs, WHILE_STARTING_MS) : warnAfterMs);
  let [checked, cpu] = [performance.now(), cpuMs()];
  let last: (() => string | undefined) | undefined;
  let loggedAt = Number.NEGATIVE_INFINITY;
  let untold = 0;

  const timer = setInterval(() => {
    const [now, cpuNow] = [performance.now(), cpuMs()];
    const stall = { duration_ms: Math.round(now - checked - CHECK_MS), cpu_ms: Math.round(cpuNow - cpu) };
    const begun = last;
    [checked, cpu, last] = [now, cpuNow, undefined];
    if (stall.duration_ms < mostAt(now - stall.duration_ms)) return;
    if (now - loggedAt < PAUSE_MS) {
      untold++;
      return;
    }
    logger.warn({ ...stall, last_begun: begun?.(), untold }, "the event loop was blocked");
    [loggedAt, untold] = [now, 0];
  }, CHECK_MS).unref();

  return {
    begins(what) {
      last = what;
    },
    close: () => clearInterval(timer),
  };
}

/**
 * Returns the main thread's CPU time. It is much shorter than a stall if the process was suspended or waited for a
 * disk.
 */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
