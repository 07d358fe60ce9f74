// Waiting with a signal, taking turns, and long work in slices.

import { setImmediate } from "node:timers/promises";

/**
 * Yields what `source` yields and returns its result. After an abort `source` has `graceMs` to end by itself; then the
 * signal's reason is thrown without waiting for it.
 */
export async function* untilAborted<E, T>(
  source: AsyncIterable<E, T>,
  signal: AbortSignal,
  graceMs = 0,
): AsyncGenerator<E, T, void> {
  const iterator = source[Symbol.asyncIterator]();
  let isOver = false;
  let giveUp = () => {};
  let timer: NodeJS.Timeout | undefined;
  const expire = () => {
    isOver = true;
    giveUp();
  };
  const onAbort = () => {
    if (graceMs === 0) expire();
    else timer = setTimeout(expire, graceMs);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    for (;;) {
      if (isOver) throw signal.reason;
      const item = await new Promise<IteratorResult<E, T>>((resolve, reject) => {
        giveUp = () => reject(signal.reason);
        iterator.next().then(resolve, reject);
      });
      if (item.done) return item.value;
      yield item.value;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    clearTimeout(timer);
    // A source that is stuck never answers this either.
    void Promise.resolve(iterator.return?.()).catch(() => {});
  }
}

/** What `work` resolves with, unless `signal` aborts first: then throws its reason. `work` goes on. */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

// Work on the same thing, one after the other; on different things, side by side.

/** Returns a function that runs `work` when all earlier work under `key` has ended, however it ended. */
export function serially(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  /** The last work under each key; a key goes when its work is done. */
  const last = new Map<string, Promise<void>>();
  return async (key, work) => {
    const before = last.get(key);
    const { promise, resolve } = Promise.withResolvers<void>();
    last.set(key, promise);
    await before;
    try {
      return await work();
    } finally {
      resolve();
      if (last.get(key) === promise) last.delete(key);
    }
  };
}

// Long work on the one thread that everybody shares: done in slices, up to a limit.
const SLICE_MS = 10;

export interface TimeSlices {
  /** To be asked often, it costs nothing: whether `rest` is due. */
  isDue(): boolean;
  /** Lets others work. Throws the reason once the signal has aborted. False when the time is used up. */
  rest(): Promise<boolean>;
}

/** Of the limit nothing is lost while resting. */
export function timeSlices(signal: AbortSignal, limitMs: number): TimeSlices {
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
