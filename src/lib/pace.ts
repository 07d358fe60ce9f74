// Long work on the one thread that everybody shares: done in slices, up to a limit.

import { setImmediate } from "node:timers/promises";

const SLICE_MS = 10;

export interface Pace {
  /** To be asked often, it costs nothing: whether `rest` is due. */
  isDue(): boolean;
  /** Lets others work. Throws the reason once the signal has aborted. False when the time is used up. */
  rest(): Promise<boolean>;
}

/** Of the limit nothing is lost while resting. */
export function pace(signal: AbortSignal, limitMs: number): Pace {
  let used = 0;
  let since = performance.now();
  return {
    isDue: () => performance.now() - since > SLICE_MS,
    async rest() {
      used += performance.now() - since;
      await setImmediate();
      signal.throwIfAborted();
      since = performance.now();
      return used < limitMs;
    },
  };
}
