// Tests of time on a machine that may stop for seconds.

import { monitorEventLoopDelay } from "node:perf_hooks";

/** A process that has stood still for this long, in ms, measures the machine's time and not the program's. */
const STALL_MS = 1_000;
const ATTEMPTS = 5;

/** Makes another attempt if one fails during which this process stood still. Any other failure is final. */
export async function unlessStalled<T>(attempt: () => Promise<T>): Promise<T> {
  const delay = monitorEventLoopDelay({ resolution: 20 });
  delay.enable();
  try {
    for (let count = 1; ; count++) {
      delay.reset();
      try {
        return await attempt();
      } catch (error) {
        if (count === ATTEMPTS || delay.max < STALL_MS * 1e6) throw error;
      }
    }
  } finally {
    delay.disable();
  }
}
