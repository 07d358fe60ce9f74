// The queue of threads with active or waiting runs, for stores of a single process. Threads that no process holds are
// taken from each tenant in turn. Within a tenant, the thread that has waited longest comes first.
//
// Memory grows with the number of threads. The cost of a turn does not depend on how many threads wait.

import type { QueueStats } from "../../agent/core/stores.ts";
import { latestLeaseEnd } from "./clock-set-back.ts";
import type { Limits } from "./options.ts";

/** The end of an expired lease. The lease can still be renewed until a process takes the run. */
export const PAST = -1;

export class FairQueue<Thread> {
  readonly #limits: Pick<Limits, "now" | "leaseMs">;
  /** All threads, by tenant. */
  readonly #busy = new Map<string, Set<Thread>>();
  /**
   * The threads whose run has a holder, with the time at which its lease ends. The lease that ends first comes first.
   */
  readonly #held = new Map<Thread, { readonly tenant: string; readonly until: number }>();
  /**
   * The threads whose run has no holder, by tenant, with the time at which each thread started to wait. The tenant
   * whose turn is next comes first.
   */
  readonly #waiting = new Map<string, Map<Thread, number>>();

  constructor(limits: Pick<Limits, "now" | "leaseMs">) {
    this.#limits = limits;
  }

  /** Returns the number of the tenant's threads with active or waiting runs. */
  count(tenant: string): number {
    return this.#busy.get(tenant)?.size ?? 0;
  }

  /** Records that the thread's run has a holder, for the duration of one lease. */
  hold(tenant: string, thread: Thread): void {
    this.drop(tenant, thread);
    add(this.#busy, tenant, thread);
    this.#held.set(thread, { tenant, until: this.#limits.now() + this.#limits.leaseMs });
  }

  /** Returns true if a run is active or waiting on the thread. */
  isBusy(tenant: string, thread: Thread): boolean {
    return this.#busy.get(tenant)?.has(thread) ?? false;
  }

  /** Returns when the lease of the thread's run ends, or undefined if it has expired. */
  heldUntil(thread: Thread): number | undefined {
    this.#expireLeases();
    return this.#held.get(thread)?.until;
  }

  /** Records that the thread's run has no holder. A thread that already waits keeps its position. */
  wait(tenant: string, thread: Thread): void {
    this.#expireLeases();
    this.#held.delete(thread);
    add(this.#busy, tenant, thread);
    this.#await(tenant, thread);
  }

  /** Records that no run is active or waiting on the thread. */
  drop(tenant: string, thread: Thread): void {
    this.#held.delete(thread);
    remove(this.#busy, tenant, thread);
    remove(this.#waiting, tenant, thread);
  }

  /** Returns the number of threads whose run has no holder, and the longest time that one of them has waited. */
  waiting(): QueueStats {
    this.#expireLeases();
    let threads = 0;
    let oldest = this.#limits.now();
    for (const each of this.#waiting.values()) {
      threads += each.size;
      const [since = oldest] = each.values();
      oldest = Math.min(oldest, since);
    }
    return { threads, oldestMs: this.#limits.now() - oldest };
  }

  /**
   * Takes the next thread of a tenant other than `except`. Tenants in `except` keep their turn. The caller must then
   * hold the thread, put it back or drop it.
   */
  take(except: ReadonlySet<string>): Thread | undefined {
    this.#expireLeases();
    for (const [tenant, threads] of this.#waiting) {
      if (except.has(tenant)) continue;
      for (const thread of threads.keys()) {
        threads.delete(thread);
        this.#waiting.delete(tenant);
        if (threads.size > 0) this.#waiting.set(tenant, threads);
        return thread;
      }
    }
    return undefined;
  }

  /** Expires leases that were not renewed in time. Restarts leases that were acquired before the clock was set back. */
  #expireLeases(): void {
    const { leaseMs } = this.#limits;
    const now = this.#limits.now();
    for (const [thread, { tenant, until }] of this.#held) {
      const isTooLate = until > latestLeaseEnd(now, leaseMs);
      if (until > now && !isTooLate) return;
      this.#held.delete(thread);
      if (isTooLate) this.#held.set(thread, { tenant, until: now + leaseMs });
      else this.#await(tenant, thread);
    }
  }

  #await(tenant: string, thread: Thread): void {
    const threads = this.#waiting.get(tenant);
    if (!threads) this.#waiting.set(tenant, new Map([[thread, this.#limits.now()]]));
    else if (!threads.has(thread)) threads.set(thread, this.#limits.now());
  }
}

function add<T>(sets: Map<string, Set<T>>, key: string, value: T): void {
  const set = sets.get(key);
  if (set) set.add(value);
  else sets.set(key, new Set([value]));
}

function remove<T>(sets: Map<string, Set<T> | Map<T, unknown>>, key: string, value: T): void {
  const set = sets.get(key);
  set?.delete(value);
  if (set?.size === 0) sets.delete(key);
}
