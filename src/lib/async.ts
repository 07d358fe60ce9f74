// Helpers to wait with an abort signal, run work one at a time, and share one call between callers.

import { setTimeout as sleep } from "node:timers/promises";

/**
 * Yields what `source` yields and returns its result. After an abort, `source` has `graceMs` milliseconds to end on its
 * own. Then this throws the signal's reason without waiting any longer.
 */
export async function* untilAborted<E, T>(
  source: AsyncIterable<E, T>,
  signal: AbortSignal,
  graceMs = 0,
): AsyncGenerator<E, T, void> {
  const iterator = source[Symbol.asyncIterator]();
  let isOver = false;
  let stopWaiting = () => {};
  let timer: NodeJS.Timeout | undefined;
  const expire = () => {
    isOver = true;
    stopWaiting();
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
        stopWaiting = () => reject(signal.reason);
        iterator.next().then(resolve, reject);
      });
      if (item.done) return item.value;
      yield item.value;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    clearTimeout(timer);
    // A stuck source never answers this call either.
    void Promise.resolve(iterator.return?.()).catch(() => {});
  }
}

/** A controller whose signal also aborts when other signals do. */
export interface LinkedController extends AbortController {
  /** Disconnects the other signals. Call this when the signal is no longer needed. */
  detach(): void;
}

/** Like `AbortSignal.any`, but without its weak references to each signal, which dominate the cost of a short call. */
export function linkedTo(...others: readonly AbortSignal[]): LinkedController {
  const controller = new AbortController();
  const follow = ({ target }: Event) => controller.abort((target as AbortSignal).reason);
  const aborted = others.find((each) => each.aborted);
  if (aborted) controller.abort(aborted.reason);
  else for (const each of others) each.addEventListener("abort", follow, { once: true });
  return Object.assign(controller, {
    detach() {
      for (const each of others) each.removeEventListener("abort", follow);
    },
  });
}

/** Returns the result of `work`. Throws the reason of `signal` if it aborts first; `work` continues. */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  try {
    // Also waits for the work after an abort, so that its later failure does not count as unhandled.
    return await Promise.race([promise, work]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Resolves when `work` has a result, and at the latest after `ms` milliseconds. */
export async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  const done = new AbortController();
  try {
    await Promise.race([work, sleep(ms, undefined, { signal: done.signal }).catch(() => {})]);
  } finally {
    done.abort();
  }
}

/** Returns a function that runs work one at a time per key, after all earlier work under the same `key` has ended or failed. */
export function serially(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
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

/**
 * Returns a function whose concurrent callers share one call of `work`. They also share its result or error for
 * `freshMs` milliseconds after it ends.
 */
export function sharedFor<T>(freshMs: number, work: () => Promise<T>): () => Promise<T> {
  let shared: Promise<T> | undefined;
  return () => {
    if (shared) return shared;
    const expire = () => setTimeout(() => (shared = undefined), freshMs).unref();
    shared = work();
    shared.then(expire, expire);
    return shared;
  };
}
