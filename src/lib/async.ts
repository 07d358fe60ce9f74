// Waiting with a signal, taking turns, sharing one call, and long work in slices.

import { setImmediate as nextTurn } from "node:timers/promises";

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
    // A source that is stuck never answers this either.
    void Promise.resolve(iterator.return?.()).catch(() => {});
  }
}

/** A controller whose signal also aborts with others. */
export interface Linked extends AbortController {
  /** The others no longer abort it. To be called when the signal is no longer needed. */
  detach(): void;
}

/**
 * Like `AbortSignal.any`, which holds each signal weakly and leaves it to the garbage collector: that is most of what a
 * short call costs with one.
 */
export function linkedTo(...others: readonly AbortSignal[]): Linked {
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

/** The result of `work`. Throws the reason of `signal` if it aborts first; `work` continues. */
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

/** Returns a function that runs work one at a time per key: after all earlier work under `key` has ended or failed. */
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

/** Returns a function that shares one call of `work`, and its result or error for `freshMs` after its end. */
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

/** Those who wait for a turn, by tenant; the tenant whose turn is next comes first. */
const waiting = new Map<string, (() => void)[]>();
/** Whether a caller has this tick of the event loop. */
let isTaken = false;

/**
 * Resolves in a tick of the event loop that no other caller gets: tenants in turn, the callers of one tenant in the order
 * of their calls. For work of several milliseconds, of which many pieces may be asked for at once.
 */
export function ownTick(tenant = ""): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const line = waiting.get(tenant);
  if (line) line.push(resolve);
  else waiting.set(tenant, [resolve]);
  takeTick();
  return promise;
}

/** The same, but at once when no other caller has this turn: what comes alone does not wait. */
export async function freeTick(tenant: string): Promise<void> {
  if (isTaken) return ownTick(tenant);
  takeTick();
}

function takeTick(): void {
  if (isTaken) return;
  isTaken = true;
  setImmediate(giveTick);
}

function giveTick(): void {
  isTaken = false;
  const [first] = waiting;
  if (!first) return;
  const [tenant, line] = first;
  waiting.delete(tenant);
  line.shift()?.();
  if (line.length > 0) waiting.set(tenant, line);
  takeTick();
}

/** How long work may keep the event loop. */
const SLICE_MS = 10;

/** When the work began that shares this tick of the event loop. */
let sharedSince: number | undefined;

/**
 * Whether those who share this tick of the event loop have kept it for long: what follows then awaits `ownTick`. Cheap enough
 * for every step of work that waits for nothing.
 */
export function isTickSpent(): boolean {
  if (sharedSince !== undefined) return performance.now() - sharedSince > SLICE_MS;
  sharedSince = performance.now();
  setImmediate(() => (sharedSince = undefined));
  return false;
}

/**
 * Resolves at once as long as those who share this tick of the event loop have not kept it for long, else in a turn of
 * its own. For loops over work that takes little time each and waits for nothing, as reads of a file or of memory do.
 */
export async function sharedTick(tenant: string): Promise<void> {
  if (!isTickSpent()) return;
  await ownTick(tenant);
  sharedSince = undefined;
  isTickSpent();
}

/** `list.map(work)`, in as many ticks of the event loop as it takes. */
export async function mapInTicks<T, R>(
  tenant: string,
  list: readonly T[],
  work: (each: T, index: number) => R,
): Promise<R[]> {
  const results: R[] = [];
  for (const [index, each] of list.entries()) {
    if (isTickSpent()) await sharedTick(tenant);
    results.push(work(each, index));
  }
  return results;
}

/** Bytes from which on work with a text gets a turn of its own: a millisecond's work. */
export const LARGE_BYTES = 32 * 1024;

/** Whether work with the texts gets a turn of its own. */
export const areLong = (texts: readonly string[]) =>
  texts.reduce((length, text) => length + text.length, 0) > LARGE_BYTES;

export interface TimeSlices {
  /** Whether `rest` is due. Cheap enough for every step. */
  isDue(): boolean;
  /** Yields to the event loop. Throws the reason once the signal has aborted. False when the time is used up. */
  rest(): Promise<boolean>;
}

/** Splits long work into slices. Time spent in `rest` does not count towards the limit. */
export function timeSlices(signal: AbortSignal, limitMs: number): TimeSlices {
  let used = 0;
  let since = performance.now();
  return {
    isDue: () => performance.now() - since > SLICE_MS,
    async rest() {
      used += performance.now() - since;
      await nextTurn();
      signal.throwIfAborted();
      since = performance.now();
      return used < limitMs;
    },
  };
}
