// Tracks whether a store on another machine answers, and how long calls wait for it. Calls inside a run wait as long as
// a lease lasts. All other calls wait for a short time.

import { AsyncLocalStorage } from "node:async_hooks";

/**
 * When a retry of a failed call may succeed. `soon` means that every caller retries. `later` means that an external
 * cause, for example a full disk, must be resolved first, so only runs retry. `never` means that no caller retries.
 */
export type Chance = "soon" | "later" | "never";

export class Deadlines {
  readonly #shortMs: number;
  readonly #inRunMs: number;
  /** Set for every call inside a run. */
  readonly #run = new AsyncLocalStorage<true>();

  constructor(shortMs: number, inRunMs: number) {
    this.#shortMs = shortMs;
    this.#inRunMs = Math.max(inRunMs, shortMs);
  }

  /** The number of milliseconds that a request from the caller can take. */
  get ms(): number {
    return this.isInRun ? this.#inRunMs : this.#shortMs;
  }

  /** True if the caller works for a run. */
  get isInRun(): boolean {
    return this.#run.getStore() === true;
  }

  /** Returns true if the caller should retry a call that failed with this chance of success. */
  isWorthwhile(chance: Chance): boolean {
    return chance === "soon" || (chance === "later" && this.isInRun);
  }

  /** Applies the deadline of a run to all calls that `work` makes, directly or indirectly. */
  inRun<T>(work: () => Promise<T>): Promise<T> {
    return this.#run.run(true, work);
  }
}

export class Outages {
  #since: number | undefined;
  #last = { ms: 0, end: Number.NEGATIVE_INFINITY };

  /** True if the store is currently not answering. */
  get isOut(): boolean {
    return this.#since !== undefined;
  }

  begin(): void {
    this.#since ??= performance.now();
  }

  end(): void {
    if (this.#since === undefined) return;
    const now = performance.now();
    this.#last = { ms: now - this.#since, end: now };
    this.#since = undefined;
  }

  /** Returns by how many milliseconds to extend leases that could not be renewed during a long outage. */
  graceMs(leaseMs: number): number {
    const ago = performance.now() - this.#last.end;
    return this.#last.ms > leaseMs / 2 && ago < leaseMs / 2 ? this.#last.ms + ago : 0;
  }
}

/** The number of milliseconds between two checks for an answer. This process makes at least one check. */
const SLICE_MS = 250;

/**
 * Resolves like `work`. Throws if `work` takes longer than `ms` milliseconds, but does not stop `work`. Time during
 * which this process is blocked counts as at most one slice, because the answer may have arrived in the meantime.
 */
export function withTimeout<T>(ms: number, work: Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const words =
    ms > 0 ? `There was no answer within ${Math.round(ms)} ms.` : "There was no time left to answer.";
  const late = () => reject(new Error(words));
  let timer: NodeJS.Timeout;
  const wait = (left: number) => {
    const slice = Math.min(left, SLICE_MS);
    // An answer that has already arrived must take precedence over the timeout, but sockets are read after timers.
    timer = setTimeout(() => (left > slice ? wait(left - slice) : setImmediate(late)), slice);
  };
  // The deadline may already have passed.
  wait(Math.max(0, ms));
  work.then(resolve, reject).finally(() => clearTimeout(timer));
  return promise;
}
