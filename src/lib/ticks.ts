// Splits long work between ticks of the event loop. Request bodies, store readers and writers, and long answers use
// this; test/long-work.test.ts lists their files. `mapInTicks` works on any list.

import { setImmediate as nextTick } from "node:timers/promises";

/** The callers that wait for their own tick, by tenant. The tenant whose turn is next comes first. */
const waiting = new Map<string, (() => void)[]>();
/** True if a caller owns the current tick of the event loop. */
let isTaken = false;

/**
 * Resolves in a tick of the event loop that no other caller gets. Tenants take turns, and calls of one tenant keep
 * their order. Use this for work of several milliseconds that many callers may request at once.
 */
export function ownTick(tenant = ""): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const line = waiting.get(tenant);
  if (line) line.push(resolve);
  else waiting.set(tenant, [resolve]);
  takeTick();
  return promise;
}

/** Like `ownTick`, but resolves at once if no other caller owns the current tick. */
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

/** The maximum number of milliseconds that work may occupy the event loop. */
const SLICE_MS = 10;

/** The start of the work that shares the current tick of the event loop. */
let sharedSince: number | undefined;

/**
 * Returns true if the work in the current tick has taken too long, in which case further work must await `ownTick`.
 * Cheap enough to call at every step of synchronous work.
 */
export function isTickSpent(): boolean {
  if (sharedSince !== undefined) return performance.now() - sharedSince > SLICE_MS;
  sharedSince = performance.now();
  setImmediate(() => (sharedSince = undefined));
  return false;
}

/**
 * Resolves at once until the work in the current tick has taken too long, then in its own tick. Use this in loops over
 * short synchronous steps, such as reads from a file or memory.
 */
export async function sharedTick(tenant: string): Promise<void> {
  if (!isTickSpent()) return;
  await ownTick(tenant);
  sharedSince = undefined;
  isTickSpent();
}

/** Like `list.map(work)`, but spread over as many ticks of the event loop as needed. */
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

/** The size in bytes from which work on a text gets its own tick. Such work takes about a millisecond. */
export const LARGE_BYTES = 32 * 1024;

/** Returns true if work on the texts gets its own tick. */
export const areLong = (texts: readonly string[]) =>
  texts.reduce((length, text) => length + text.length, 0) > LARGE_BYTES;

export interface TimeSlices {
  /** Returns true if it is time to call `rest`. Cheap enough to call at every step. */
  isDue(): boolean;
  /** Yields to the event loop. Returns false if the time limit is used up. Throws the signal's reason after an abort. */
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
      await nextTick();
      signal.throwIfAborted();
      since = performance.now();
      return used < limitMs;
    },
  };
}
