// The ports to threads, runs and their events, and all that runs and viewers use. All methods take the owner; another
// owner's id is not found. Every implementation passes the contract suites in test/contracts.

import type { z } from "zod";
import type { EventName, StreamEvent } from "../../protocol/event.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { EventBus } from "./bus.ts";
import type { DeferredCallStore } from "./deferred-calls.ts";
import type { AppError } from "./errors.ts";
import type { ItemStore } from "./items.ts";
import type { Message, UserMessage } from "./message.ts";
import type { ForkedFrom, Metadata, Parent, RunRecord, RunRequest, Thread, ThreadStatus } from "./records.ts";

/** The right to write one run. Every write carries it and is refused (`lease_lost`) once `epoch` is old. */
export interface Lease {
  readonly owner: Owner;
  readonly thread_id: string;
  readonly run_id: string;
  /** Grows by one with every attempt. */
  readonly epoch: number;
}

/** Names a run. */
export type RunKey = Omit<Lease, "epoch">;

/** A run this process may now execute. */
export interface Claim {
  readonly lease: Lease;
  readonly run: RunRecord;
  readonly request: RunRequest;
  /** In how many attempts its process died, if in any: see `core/trials.ts`. */
  readonly deaths?: number;
}

export interface NewRun {
  readonly id: string;
  readonly thread_id: string;
  readonly agent: string;
  readonly request: RunRequest;
  readonly metadata: z.infer<typeof Metadata>;
  readonly idempotency_key?: string;
  /** The run that it resumes. */
  readonly resumes?: string;
  /**
   * The id of a message: when the run is accepted, this and all later messages are forgotten, and so are the thread's deferred
   * calls, except those that it no longer waits for. The thread must be free (else `thread_busy`, for every `whenBusy`) and
   * have the message (else `invalid_request`).
   */
  readonly rewind_to?: string;
  /** With `rewind_to`: the thread must still end with this message (else `thread_busy`), up to which a copy of it is kept. */
  readonly kept_to?: string;
}

export interface NewThread {
  readonly id: string;
  /** Its agent until its first run. */
  readonly agent?: string;
  readonly title?: string;
  readonly metadata: z.infer<typeof Metadata>;
  readonly parent?: Parent;
  readonly forked_from?: ForkedFrom;
  /** Its first messages. */
  readonly messages?: readonly Message[];
  readonly state?: Readonly<Record<string, unknown>>;
}

export type StartResult =
  /** Accepted and claimed: execute it. */
  | { readonly outcome: "claimed"; readonly claim: Claim }
  /** Accepted; it waits for its thread. */
  | { readonly outcome: "queued"; readonly run: RunRecord }
  /** This run was started with the same idempotency key. */
  | { readonly outcome: "known"; readonly run: RunRecord };

export interface Page<T> {
  readonly items: T[];
  /** The cursor of the next page; absent on the last one. */
  readonly next_cursor?: string;
}

export interface ThreadQuery {
  readonly limit: number;
  readonly cursor?: string;
  readonly agent?: string;
  readonly status?: ThreadStatus;
  /** Part of the title, in any case. */
  readonly q?: string;
  /** Only children of this thread. Without it, only threads without a parent, unless `children`. */
  readonly parent?: string;
  /** Include threads with a parent. */
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
  /** Whether the thread has no message after them. */
  readonly isLast: boolean;
}

export interface MeasuredThread {
  readonly thread: Thread;
  /** As `ThreadStore.bytes`. */
  readonly bytes: number;
}

export interface ThreadStore {
  /** Atomic. Throws `already_exists`. */
  create(owner: Owner, thread: NewThread): Promise<Thread>;
  get(owner: Owner, id: string): Promise<Thread | undefined>;
  /** Newest change first. */
  list(owner: Owner, query: ThreadQuery): Promise<Page<Thread>>;
  /**
   * How many of all owners are interrupted, without those of subagents whose parent waits with them. Absent where threads cannot
   * be counted together.
   */
  interrupted?(): Promise<number>;
  /** `forget` names keys of its state to delete; with it, throws `thread_busy` while a run is active or waits. */
  update(
    owner: Owner,
    id: string,
    change: { title?: string; metadata?: Thread["metadata"]; forget?: readonly string[] },
  ): Promise<Thread | undefined>;
  /** With its runs and events. False when there is none; throws `thread_busy` while a run is active or waits. */
  delete(owner: Owner, id: string): Promise<boolean>;
  /**
   * The messages, oldest first. They are frozen: every reader may be given the same ones. `after` is a message id. Lets other
   * work run between two pages. Throws `not_found` when there is no message `after`.
   */
  messages(owner: Owner, id: string, window?: { after?: string; limit?: number }): Promise<Message[]>;
  /**
   * The next messages after `after`, up to `limit` of them and up to `bytes` of text, but at least one if there is one.
   * May be parsed in the tick of the event loop in which they arrive. Throws `not_found` when there is no message `after`.
   */
  messagePage(owner: Owner, id: string, page: PageQuery): Promise<MessagePage>;
  /** Of its messages as JSON; 0 without the thread. */
  bytes(owner: Owner, id: string): Promise<number>;
  /** The thread and its bytes, read at once. */
  measured(owner: Owner, id: string): Promise<MeasuredThread | undefined>;
  /** Without `messageId` the last one. */
  message(owner: Owner, id: string, messageId?: string): Promise<Message | undefined>;
  /**
   * Creates a thread that begins with the messages of thread `from`, up to and including `until`, and records where it came
   * from. Copies in slices, and lets other work run between them; no read shows the thread before it is complete. Throws
   * `not_found` without `from` or `until`, `thread_busy` when `from` loses messages in the meantime, and what `create` throws.
   */
  fork(
    owner: Owner,
    from: string,
    thread: Omit<NewThread, "messages" | "forked_from">,
    until?: string,
  ): Promise<Thread>;
  /** Forgets messages and state, keeps the thread. As `delete`, otherwise. */
  clear(owner: Owner, id: string): Promise<boolean>;
  state(owner: Owner, id: string): Promise<Record<string, unknown>>;
}

export interface RunStore {
  /** How long a lease lasts without renewal, in ms. */
  readonly leaseMs: number;
  /**
   * Accepts a run in one step: creates the thread if there is none, and claims the run if the thread is free.
   * A busy thread throws `thread_busy`, or keeps the run waiting when `queue` (full: `queue_full`); `front` puts it
   * before the others, and is not limited by the queue's length.
   */
  start(owner: Owner, run: NewRun, whenBusy: WhenBusy): Promise<StartResult>;
  get(owner: Owner, threadId: string, runId: string): Promise<RunRecord | undefined>;
  /** The run of a thread that was started with that idempotency key. */
  known(owner: Owner, threadId: string, key: string): Promise<RunRecord | undefined>;
  /** Newest first. */
  list(owner: Owner, threadId: string, page: { limit: number; cursor?: string }): Promise<Page<RunRecord>>;
  /** The run that is running on a thread. */
  active(owner: Owner, threadId: string): Promise<RunRecord | undefined>;
  /**
   * As `start`, but claims nothing: the run waits until a process has room and takes it with `claimAbandoned`.
   * Throws `limit_exceeded` when too many threads of the tenant have active or waiting runs.
   */
  enqueue(
    owner: Owner,
    run: NewRun,
    whenBusy: WhenBusy,
  ): Promise<Exclude<StartResult, { outcome: "claimed" }>>;
  /** Takes over the thread's run whose process died, one attempt later; else its next waiting run, if it is free. */
  claimNext(owner: Owner, threadId: string): Promise<Claim | undefined>;
  /**
   * Takes over runs whose process died, one attempt later, and waiting runs whose thread is free: at most `limit`,
   * tenants in turn, longest waiting first. Those of the tenants in `except` keep waiting, and keep their turn. So do
   * those that died more often than `mostDeaths` (default: none does), or may not be executed beside another of the claims.
   */
  claimAbandoned(limit: number, except?: readonly string[], mostDeaths?: number): Promise<Claim[]>;
  /** Of all threads with a run that no process executes. */
  waiting(): Promise<QueueStats>;
  /**
   * Gives a run back: the next process that looks takes it over, one epoch later. Does not count as a crash. Throws
   * `lease_lost`.
   */
  release(lease: Lease): Promise<void>;
  /**
   * The process that had this lease lives: if another one has taken the run over, that was no crash. To be called once. Does
   * nothing for a run that was not taken over.
   */
  excuse(lease: Lease): Promise<void>;
  /**
   * The run has lived for long in this process: if the process dies now, that is not held against it. To be called once. Does nothing
   * without the lease, and in attempts after many.
   */
  acquit(lease: Lease): Promise<void>;
  /**
   * Calls `listener` for notifications to the processes that execute runs, from this process or another. Delivered at
   * most once, so poll as well. One listener; it must not throw.
   */
  subscribe(listener: (call: ControlMessage) => void): void;
  /**
   * The thread's run that began next after the run `after`, the first one for `""`, the last one without `after`. Runs
   * that ended before they began are skipped.
   */
  begun(owner: Owner, threadId: string, after?: string): Promise<RunRecord | undefined>;
  /** A run's place among those of its thread that began: larger than that of each before it. It never changes. */
  place(owner: Owner, threadId: string, runId: string): Promise<number | undefined>;
  /** Asks a run to end. A waiting run ends at once. Returns the run afterwards. */
  requestStop(owner: Owner, threadId: string, runId: string, mode: StopMode): Promise<RunRecord | undefined>;
  /**
   * Leaves a message for a running run. False when it is not running. Throws `queue_full`. A message that the run does
   * not read joins the thread when it ends, as an `on_message` before its last event.
   */
  steer(owner: Owner, threadId: string, runId: string, message: UserMessage): Promise<boolean>;
  /** The messages left for a run that are not in the thread yet. */
  inbox(lease: Lease): Promise<UserMessage[]>;
  /** Renews the lease. Returns the stop that was requested, if any. Throws `lease_lost`. */
  renew(lease: Lease): Promise<{ stop?: StopMode }>;
}
export interface QueueStats {
  readonly threads: number;
  /** How long the one waits that waits longest, in ms. */
  readonly oldestMs: number;
}
export type StopMode = "cancel" | "interrupt";
export type WhenBusy = "reject" | "queue" | "front";

/**
 * `stop`: a stop of that run was requested. `waiting`: runs wait to be executed. `crashed`: this process found a run that had
 * died too often, and has ended it with that error.
 */
export type ControlMessage =
  | { readonly call: "crashed"; readonly claim: Claim; readonly end: StreamEvent }
  | { readonly call: "stop"; readonly run_id: string; readonly mode: StopMode }
  | { readonly call: "waiting" };

/** One event as it was stored and as viewers get it. */
export interface LogEntry {
  readonly epoch: number;
  /** 1, 2, 3 … without gaps over all attempts of a run. */
  readonly seq: number;
  readonly event: EventName;
  /** The StreamEvent, serialised once. */
  readonly json: string;
}

/** A reader's position: the entry `seq` as `epoch` wrote it; without an epoch, as any epoch wrote it. */
export interface Cursor {
  readonly seq: number;
  readonly epoch?: number;
}

export interface EventLog {
  /**
   * Writes events, in order, and their effects, atomically: `on_message` adds to the thread, `on_state` changes a value,
   * `done` and `error` settle the run, free its thread and end its log; when another run waits, `RunStore.subscribe` hears
   * `waiting`. Events with a `path` belong to another thread and have no effect. Readers see events only once they are written. Throws
   * `lease_lost` when the lease is old, having written nothing.
   */
  append(lease: Lease, events: readonly StreamEvent[]): Promise<void>;
  /** The numbers of the first and the last stored entry; both 0 when there are none, or no such run. */
  bounds(run: RunKey): Promise<{ first: number; last: number }>;
  /**
   * The number of the last entry of the current log that a reader at `cursor` has seen: the cursor's own, unless the log
   * has lost that entry or another epoch has rewritten it.
   */
  seen(run: RunKey, cursor: Cursor): Promise<number>;
  /**
   * The entries after `after`, in batches, stored ones first, then live; ends after the terminal event or when `signal`
   * aborts. Throws `events_expired` when entries after `after` are no longer stored, when `after` is beyond the end, and
   * when the log differs from what the reader has seen (see `seen`). Throws `not_found` without such a run.
   */
  read(
    run: RunKey,
    after: number | Cursor,
    signal: AbortSignal,
  ): AsyncGenerator<readonly LogEntry[], void, void>;
  /**
   * Those who read the run in this process and wait for its next entry get `why`. The log stays as it is. Does nothing in a
   * store whose writes cannot fail.
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
  /** Whether another process can continue runs after this one. */
  readonly isDurable: boolean;
  /** Values that all processes on these stores share; absent for a single process. */
  readonly shared?: {
    /** Unique to the deployment. Made once. */
    readonly deployment: string;
    /** Made once. */
    readonly secret: string;
  };
  /**
   * Runs `work` on behalf of a run: every call to the stores that it makes, directly or not, waits for an unreachable store
   * as long as the run's lease lasts (`runs.leaseMs`). Any other call returns, or throws `unavailable`, within a short
   * deadline.
   */
  inRun<T>(work: () => Promise<T>): Promise<T>;
  /** Throws `unavailable` when it cannot be reached. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
