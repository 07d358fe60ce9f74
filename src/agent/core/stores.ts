// The ports to threads, runs and their events, for everything that executes or follows runs. Every method takes the owner and
// returns "not found" for another owner's id. Every implementation passes the contract suites in test/contracts.

import type { z } from "zod";
import type { EventName, StreamEvent } from "../../protocol/event.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { EventBus } from "./bus.ts";
import type { DeferredCallStore } from "./deferred-calls.ts";
import type { AppError } from "./errors.ts";
import type { ItemStore } from "./items.ts";
import type { Message, UserMessage } from "./message.ts";
import type { ForkedFrom, Metadata, Parent, RunRecord, RunRequest, Thread, ThreadStatus } from "./records.ts";

/**
 * The right to write one run. Every write includes it and is refused (`lease_lost`) once `epoch` is outdated.
 */
export interface Lease {
  readonly owner: Owner;
  readonly thread_id: string;
  readonly run_id: string;
  /** Increases by one with every attempt. */
  readonly epoch: number;
}

/** Identifies a run. */
export type RunKey = Omit<Lease, "epoch">;

/** A run that this process may now execute. */
export interface Claim {
  readonly lease: Lease;
  readonly run: RunRecord;
  readonly request: RunRequest;
  /** The number of attempts whose process died, or undefined for none. See `core/trials.ts`. */
  readonly deaths?: number;
}

export interface NewRun {
  readonly id: string;
  readonly thread_id: string;
  readonly agent: string;
  readonly request: RunRequest;
  readonly metadata: z.infer<typeof Metadata>;
  readonly idempotency_key?: string;
  /** The run that this run resumes. */
  readonly resumes?: string;
  /**
   * The id of a message. Accepting the run deletes this message, all later ones, and the thread's deferred
   * calls except those it no longer waits for. The thread must be free, otherwise `start` throws
   * `thread_busy` for every `whenBusy`. The thread must contain the message, otherwise `start` throws
   * `invalid_request`.
   */
  readonly rewind_to?: string;
  /**
   * Only with `rewind_to`. A copy of the thread up to this message is kept. The thread must still end with
   * this message. Otherwise, `start` throws `thread_busy`.
   */
  readonly kept_to?: string;
}

export interface NewThread {
  readonly id: string;
  /** The thread's agent until its first run. */
  readonly agent?: string;
  readonly title?: string;
  readonly metadata: z.infer<typeof Metadata>;
  readonly parent?: Parent;
  readonly forked_from?: ForkedFrom;
  /** The thread's first messages. */
  readonly messages?: readonly Message[];
  readonly state?: Readonly<Record<string, unknown>>;
}

export type StartResult =
  /** The run was accepted and claimed: execute it. */
  | { readonly outcome: "claimed"; readonly claim: Claim }
  /** The run was accepted and waits for its thread. */
  | { readonly outcome: "queued"; readonly run: RunRecord }
  /** A run with the same idempotency key already exists. */
  | { readonly outcome: "known"; readonly run: RunRecord };

export interface Page<T> {
  readonly items: T[];
  /** The cursor of the next page. Undefined on the last page. */
  readonly next_cursor?: string;
}

export interface ThreadQuery {
  readonly limit: number;
  readonly cursor?: string;
  readonly agent?: string;
  readonly status?: ThreadStatus;
  /** A part of the title, in upper or lower case. */
  readonly q?: string;
  /**
   * Returns only children of this thread. If unset, returns only threads without a parent, unless `children`
   * is set.
   */
  readonly parent?: string;
  /** Includes threads with a parent. */
  readonly children?: true;
}

interface PageQuery {
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
  readonly bytes: number;
}

export interface MessagePage {
  /** The messages as JSON, oldest first. */
  readonly texts: readonly string[];
  /** True if no message follows them in the thread. */
  readonly isLast: boolean;
}

export interface MeasuredThread {
  readonly thread: Thread;
  /** The result of `ThreadStore.bytes`. */
  readonly bytes: number;
}

export interface ThreadStore {
  /** Creates a thread atomically. Throws `already_exists`. */
  create(owner: Owner, thread: NewThread): Promise<Thread>;
  get(owner: Owner, id: string): Promise<Thread | undefined>;
  /** Returns threads, most recently changed first. */
  list(owner: Owner, query: ThreadQuery): Promise<Page<Thread>>;
  /**
   * Returns the number of interrupted threads of all owners, except subagents whose parent waits with them.
   * Undefined in stores that cannot count all threads together.
   */
  interrupted?(): Promise<number>;
  /**
   * `forget` lists state keys to delete. With `forget`, throws `thread_busy` while a run is active or waits.
   */
  update(
    owner: Owner,
    id: string,
    change: { title?: string; metadata?: Thread["metadata"]; forget?: readonly string[] },
  ): Promise<Thread | undefined>;
  /**
   * Deletes a thread with its runs and events. Returns false if it does not exist. Throws `thread_busy` while
   * a run is active or waits.
   */
  delete(owner: Owner, id: string): Promise<boolean>;
  /**
   * Returns the messages, oldest first. They are frozen because several readers may share them. `after` is a
   * message id. Yields to other work between pages. Throws `not_found` when no message has the id `after`.
   */
  messages(owner: Owner, id: string, window?: { after?: string; limit?: number }): Promise<Message[]>;
  /**
   * Returns the messages after `after`: at most `limit` messages and `bytes` bytes of text, but at least one
   * message if any exist. The page is small enough to parse in one tick of the event loop. Throws `not_found`
   * when no message has the id `after`.
   */
  messagePage(owner: Owner, id: string, page: PageQuery): Promise<MessagePage>;
  /** Returns the total bytes of the thread's messages as JSON, or 0 if the thread does not exist. */
  bytes(owner: Owner, id: string): Promise<number>;
  /** Returns the thread and its bytes from one read. */
  measured(owner: Owner, id: string): Promise<MeasuredThread | undefined>;
  /** Returns the last message if `messageId` is undefined. */
  message(owner: Owner, id: string, messageId?: string): Promise<Message | undefined>;
  /**
   * Creates a thread that begins with the messages of thread `from`, up to and including `until`, and records
   * its origin. Copies in slices and yields to other work between them. No read returns the thread before it
   * is complete. Throws `not_found` if `from` or `until` does not exist, `thread_busy` if `from` loses
   * messages in the meantime, and the errors of `create`.
   */
  fork(
    owner: Owner,
    from: string,
    thread: Omit<NewThread, "messages" | "forked_from">,
    until?: string,
  ): Promise<Thread>;
  /** Deletes the messages and state but keeps the thread. In all other respects, works like `delete`. */
  clear(owner: Owner, id: string): Promise<boolean>;
  state(owner: Owner, id: string): Promise<Record<string, unknown>>;
}

export interface RunStore {
  /** The lifetime of a lease without renewal, in ms. */
  readonly leaseMs: number;
  /**
   * Accepts a run in one step. Creates the thread if it does not exist, and claims the run if the thread is
   * free. On a busy thread, `reject` throws `thread_busy`. `queue` lets the run wait, and throws `queue_full`
   * when the queue is full. `front` puts the run before all others, even when the queue is full.
   */
  start(owner: Owner, run: NewRun, whenBusy: WhenBusy): Promise<StartResult>;
  get(owner: Owner, threadId: string, runId: string): Promise<RunRecord | undefined>;
  /** Returns the run that was started on the thread with this idempotency key. */
  known(owner: Owner, threadId: string, key: string): Promise<RunRecord | undefined>;
  /** Returns runs, most recent first. */
  list(owner: Owner, threadId: string, page: { limit: number; cursor?: string }): Promise<Page<RunRecord>>;
  /** Returns the run that is currently executing on a thread. */
  active(owner: Owner, threadId: string): Promise<RunRecord | undefined>;
  /**
   * Like `start`, but does not claim the run. The run waits until a process with a free slot takes it with
   * `claimAbandoned`. Throws `limit_exceeded` when too many of the tenant's threads have active or waiting
   * runs.
   */
  enqueue(
    owner: Owner,
    run: NewRun,
    whenBusy: WhenBusy,
  ): Promise<Exclude<StartResult, { outcome: "claimed" }>>;
  /**
   * Takes over the thread's run as its next attempt if the process that executed the run has died. Otherwise
   * takes the thread's next waiting run, if the thread is free.
   */
  claimNext(owner: Owner, threadId: string): Promise<Claim | undefined>;
  /**
   * Takes over runs whose process died, each as its next attempt, and waiting runs whose thread is free.
   * Returns at most `limit` runs. Tenants take turns, and the longest-waiting tenant comes first. Runs of the
   * tenants in `except` keep waiting and keep their turn. Runs that died more often than `mostDeaths`
   * (default: no limit) and runs that may not execute alongside another claim also keep waiting.
   */
  claimAbandoned(limit: number, except?: readonly string[], mostDeaths?: number): Promise<Claim[]>;
  /** Returns statistics of all threads with a run that no process executes. */
  waiting(): Promise<QueueStats>;
  /**
   * Releases a run, so the next process that looks for runs takes it over with the next epoch. This does not
   * count as a crash. Throws `lease_lost`.
   */
  release(lease: Lease): Promise<void>;
  /**
   * Records that the process with this lease is alive, so a take-over by another process was not a crash.
   * Call it once. Does nothing for a run that was not taken over.
   */
  excuse(lease: Lease): Promise<void>;
  /**
   * Records that the run has executed in this process for a long time, so a later death of the process does
   * not count against it. Call it once. Does nothing without the lease, or when the run has already made many
   * attempts.
   */
  acquit(lease: Lease): Promise<void>;
  /**
   * Calls `listener` for notifications to the processes that execute runs, from this process or another.
   * Delivers each notification at most once, so callers must also poll. Supports one listener, which must not
   * throw.
   */
  subscribe(listener: (call: ControlMessage) => void): void;
  /**
   * Returns the run of the thread that began directly after the run `after`. Without `after`, returns the
   * last run. With `""`, returns the first. Skips runs that ended before they began.
   */
  begun(owner: Owner, threadId: string, after?: string): Promise<RunRecord | undefined>;
  /**
   * Returns the position of a run among the thread's runs that began. The position increases from run to run
   * and never changes.
   */
  place(owner: Owner, threadId: string, runId: string): Promise<number | undefined>;
  /** Requests the end of a run. A waiting run ends at once. Returns the updated run. */
  requestStop(owner: Owner, threadId: string, runId: string, mode: StopMode): Promise<RunRecord | undefined>;
  /**
   * Leaves a message for an active run. Returns false when the run is not active. Throws `queue_full`. If the
   * run ends before it includes the message in a model call, the message is added to the thread, as an
   * `on_message` before the run's last event.
   */
  steer(owner: Owner, threadId: string, runId: string, message: UserMessage): Promise<boolean>;
  /** Returns the messages left for a run that are not in the thread yet. */
  inbox(lease: Lease): Promise<UserMessage[]>;
  /** Renews the lease and returns the requested stop, if any. Throws `lease_lost`. */
  renew(lease: Lease): Promise<{ stop?: StopMode }>;
}
export interface QueueStats {
  readonly threads: number;
  /** The time that the longest-waiting run has waited, in ms. */
  readonly oldestMs: number;
}
export type StopMode = "cancel" | "interrupt";
export type WhenBusy = "reject" | "queue" | "front";

/**
 * `stop`: someone requested a stop of the run. `waiting`: runs wait for execution. `crashed`: this process
 * found a run that had died too often, and ended it with this error.
 */
export type ControlMessage =
  | { readonly call: "crashed"; readonly claim: Claim; readonly end: StreamEvent }
  | { readonly call: "stop"; readonly run_id: string; readonly mode: StopMode }
  | { readonly call: "waiting" };

/** One event as stored, and as viewers receive it. */
export interface LogEntry {
  readonly epoch: number;
  /** Counts 1, 2, 3 … without gaps across all attempts of a run. */
  readonly seq: number;
  readonly event: EventName;
  /** The serialized `StreamEvent`. */
  readonly json: string;
}

/**
 * A reader's position: the entry `seq` that `epoch` wrote. Without an epoch, the entry may come from any
 * epoch.
 */
export interface Cursor {
  readonly seq: number;
  readonly epoch?: number;
}

export interface EventLog {
  /**
   * Writes events in order, with their effects, atomically. `on_message` adds to the thread. `on_state`
   * changes a value. `done` and `error` settle the run, free its thread and end its log. If another run
   * waits, `RunStore.subscribe` then reports `waiting`. Events with a `path` belong to another thread and
   * have no effect. Readers see only written events. Throws `lease_lost` without writing when the lease is
   * outdated.
   */
  append(lease: Lease, events: readonly StreamEvent[]): Promise<void>;
  /**
   * Returns the numbers of the first and the last stored entry. Both are 0 if the run has no entries or does
   * not exist.
   */
  bounds(run: RunKey): Promise<{ first: number; last: number }>;
  /**
   * Returns the number of the last entry in the current log that a reader at `cursor` has seen. This is the
   * cursor's own `seq`, unless the log has lost that entry or another epoch has rewritten it.
   */
  seen(run: RunKey, cursor: Cursor): Promise<number>;
  /**
   * Yields the entries after `after` in batches, first stored ones and then live ones. Ends after the
   * terminal event or when `signal` aborts. Throws `not_found` when the run does not exist. Throws
   * `events_expired` when the entries after `after` are no longer stored, or when `after` is beyond the end.
   * Also throws `events_expired` when the log differs from the entries that the reader has seen (see `seen`).
   */
  read(
    run: RunKey,
    after: number | Cursor,
    signal: AbortSignal,
  ): AsyncGenerator<readonly LogEntry[], void, void>;
  /**
   * Throws `why` to all readers in this process that are waiting for the run's next entry. Does not change
   * the log. Does nothing in a store whose writes cannot fail.
   */
  fail(run: RunKey, why: AppError): void;
}

/** The stores that runs and their viewers use. */
export interface Stores {
  readonly threads: ThreadStore;
  readonly runs: RunStore;
  readonly events: EventLog;
  readonly deferredCalls: DeferredCallStore;
  readonly items: ItemStore;
  readonly bus: EventBus;
  /** True if another process can continue runs after this one. */
  readonly isDurable: boolean;
  /** The values that all processes using these stores share. Undefined for a single process. */
  readonly shared?: {
    /** The unique id of the deployment. It is created once. */
    readonly deployment: string;
    /** The secret of the deployment. It is created once. */
    readonly secret: string;
  };
  /**
   * Executes `work` on behalf of a run. Calls that `work` makes to the stores, directly or indirectly, wait
   * for an unreachable store for at most the lifetime of the run's lease (`runs.leaseMs`). Any other call
   * returns, or throws `unavailable`, within a short deadline.
   */
  inRun<T>(work: () => Promise<T>): Promise<T>;
  /** Throws `unavailable` when the stores cannot be reached. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
