// The interface that a store implements for threads, runs and deferred calls. The ports (runs.ts, threads.ts,
// deferred-calls.ts) and the rules (rules.ts) are built on top of it, once for all stores. A kernel loads the values
// that a decision needs, and carries out its writes.

import type { DeferredCallStore, DueCalls } from "../../agent/core/deferred-calls.ts";
import { AppError } from "../../agent/core/errors.ts";
import type { EventLog, Lease, LogEntry, RunStore, ThreadStore } from "../../agent/core/stores.ts";
import { randomId } from "../../lib/random-id.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Limits } from "./options.ts";
import type { MessageText } from "./outcomes.ts";
import type { Decision, Lookups, View, Write } from "./thread-head.ts";

export interface Due {
  readonly limit: number;
  readonly except: readonly string[];
}

/** `Thread` is the type with which the store identifies a thread. Only the kernel interprets it. */
export interface Kernel<Thread> {
  readonly limits: Limits;

  ref(owner: Owner, threadId: string): Thread;

  /**
   * Loads the thread and the values that `lookups` names, calls `decide`, and carries out its writes atomically, so the
   * thread does not change in between. `decide` must be pure, and may be called again because the thread has changed.
   * If it throws, nothing changes. Resolves once the writes are as durable as the store promises.
   *
   * After the commit, the kernel applies the consequences of the writes. After a `hold_run`, only the new epoch can
   * append events, until its lease of `leaseMs` ends. `eachDue` finds a thread whose runs no process holds. `tell` is
   * delivered to `RunStore.subscribe` once the change is complete. Repeating a commit after a lost response has no
   * second effect.
   */
  change<R>(thread: Thread, lookups: Lookups, decide: (view: View) => Decision<R>): Promise<R>;

  /**
   * Stores messages for a thread that a later `create_thread` with the same token will create, in the order of the
   * calls. Reads do not show them until then. Throws `already_exists` if another thread with this id exists or is being
   * copied.
   */
  stage(thread: Thread, token: string, messages: readonly MessageText[]): Promise<void>;
  /** Deletes the staged messages. A store also deletes messages that a dead process staged. */
  unstage(thread: Thread, token: string): Promise<void>;

  /**
   * Calls `look` for threads with runs that no process holds, until `limit` runs are found or no threads are left.
   * Tenants take turns. Within a tenant, the thread that has waited longest comes first. A thread without a result is
   * checked again at `until`. Tenants in `except` are skipped and keep their turn.
   */
  eachDue<T>(which: Due, look: (thread: Thread) => Promise<LookResult<T>>): Promise<T[]>;

  /** Returns the entries of a run's log that its last events depend on; see `failedAfterCrashes`. */
  logOf(lease: Lease): Promise<readonly LogEntry[]>;

  /** Returns the thread and the id of the call that a token belongs to. */
  findCall(tokenHash: string): Promise<{ readonly thread: Thread; readonly call_id: string } | undefined>;
  /** Implements `DeferredCallStore.due`. */
  dueCalls(limit: number): Promise<DueCalls[]>;

  /** Methods that apply no rules: reads, and writes that are guarded only by the epoch of the lease. */
  readonly runs: Pick<
    RunStore,
    "get" | "known" | "list" | "active" | "begun" | "place" | "subscribe" | "inbox" | "renew" | "waiting"
  >;
  readonly threads: Pick<
    ThreadStore,
    "get" | "list" | "interrupted" | "bytes" | "measured" | "message" | "messagePage" | "state"
  > &
    /** Absent if messages are stored as text. */
    Partial<Pick<ThreadStore, "messages">>;
  readonly deferredCalls: Pick<DeferredCallStore, "get">;
  readonly events: EventLog;
}

export type LookResult<T> =
  | { readonly found: T }
  | { readonly found?: undefined; readonly until: number | undefined };

/**
 * A store that cannot lock a thread during a decision. It commits a decision only if it was based on the thread's
 * current state.
 */
export interface Versioned<V extends View> {
  load(): Promise<V>;
  /**
   * Carries out `writes` if the thread has not changed since `view` was loaded, and returns the time. Otherwise,
   * returns the current thread. A repeated call with the same `id` has no second effect and returns the same result.
   */
  commit(
    view: V,
    writes: readonly Write[],
    id: string,
  ): Promise<{ readonly at: number } | { readonly newer: V }>;
}

const MAX_ATTEMPTS = 100;

/**
 * Implements `Kernel.change` by compare-and-set. With a `guess`, makes the decision before loading anything. The commit
 * detects a wrong guess, so `decide` must have no other effect. Throws `unavailable` if the thread keeps changing.
 */
export async function changeVersioned<V extends View, R>(
  store: Versioned<V>,
  decide: (view: View) => Decision<R>,
  guess?: V,
): Promise<R> {
  let decision = guess && writingDecision(decide, guess);
  let view = guess && decision ? guess : await store.load();
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const { writes, result } = decision ?? decide(view);
    decision = undefined;
    if (writes.length === 0) return result(view.now);
    const reply = await store.commit(view, writes, randomId());
    if ("at" in reply) return result(reply.at);
    view = reply.newer;
  }
  throw new AppError(
    "unavailable",
    `The thread changed ${MAX_ATTEMPTS} times during this operation. Try again.`,
  );
}

function writingDecision<R>(decide: (view: View) => Decision<R>, guess: View): Decision<R> | undefined {
  try {
    const decision = decide(guess);
    return decision.writes.length > 0 ? decision : undefined;
  } catch {
    return undefined;
  }
}
