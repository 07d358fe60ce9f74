// For a store on another machine: if it answers now, and how long calls wait for it. Calls inside a run wait as long as a lease
// lasts, all others a short time.

import { AsyncLocalStorage } from "node:async_hooks";

/**
 * When a call that failed may succeed: `soon`, so everyone tries it again; `later`, when something outside has been cured, such as
 * a full disk: only runs wait for that; or `never`.
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

  /** For what the caller asks now. */
  get ms(): number {
    return this.isInRun ? this.#inRunMs : this.#shortMs;
  }

  /** True if the caller works for a run. */
  get isInRun(): boolean {
    return this.#run.getStore() === true;
  }

  /** True if a failure with this chance is worth a retry by the caller. */
  isWorthwhile(chance: Chance): boolean {
    return chance === "soon" || (chance === "later" && this.isInRun);
  }

  /** Every call that `work` makes, directly or not, has the deadline of a run. */
  inRun<T>(work: () => Promise<T>): Promise<T> {
    return this.#run.run(true, work);
  }
}

export class Outages {
  #since: number | undefined;
  #last = { ms: 0, end: Number.NEGATIVE_INFINITY };

  /** True if the store does not answer now. */
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

  /** How much longer than their time leases last, in ms: in a long outage none could be renewed. */
  graceMs(leaseMs: number): number {
    const ago = performance.now() - this.#last.end;
    return this.#last.ms > leaseMs / 2 && ago < leaseMs / 2 ? this.#last.ms + ago : 0;
  }
}

/** In which this process looks whether there is an answer, at least once. */
const SLICE_MS = 250;

/**
 * Resolves as `work` does. Throws when it takes longer, while `work` continues. Time in which this process is blocked counts as one
 * slice at most: the answer may have come meanwhile.
 */
export function withTimeout<T>(ms: number, work: Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const words =
    ms > 0 ? `There was no answer within ${Math.round(ms)} ms.` : "There was no time left to answer.";
  const late = () => reject(new Error(words));
  let timer: NodeJS.Timeout;
  const wait = (left: number) => {
    const slice = Math.min(left, SLICE_MS);
    // An answer that has arrived comes before the timeout: sockets are read after the timers.
    timer = setTimeout(() => (left > slice ? wait(left - slice) : setImmediate(late)), slice);
  };
  // The moment may have passed already.
  wait(Math.max(0, ms));
  work.then(resolve, reject).finally(() => clearTimeout(timer));
  return promise;
}
