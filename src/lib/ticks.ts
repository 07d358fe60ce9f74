// Long work leaves ticks of the event loop to others. Bodies, readers of stores, writers and long answers cut it: test/long-work.test.ts
// lists their files. `mapInTicks` is for every list.

import { setImmediate as nextTick } from "node:timers/promises";

/** Those who wait for a tick of their own, by tenant; the tenant whose turn is next comes first. */
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

/** The same, but at once when no other caller has this tick: what comes alone does not wait. */
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
 * Resolves at once as long as those who share this tick of the event loop have not kept it for long, else in a tick of
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

/** Bytes from which on work with a text gets a tick of its own: a millisecond's work. */
export const LARGE_BYTES = 32 * 1024;

/** Whether work with the texts gets a tick of its own. */
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
      await nextTick();
      signal.throwIfAborted();
      since = performance.now();
      return used < limitMs;
    },
  };
}
