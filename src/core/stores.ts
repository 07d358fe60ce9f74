// The ports to storage: threads, runs, events, documents and the user's bus. All methods take the owner; another
// owner's id is not found. Every implementation passes the contract suites in test/contracts.

import { z } from "zod";
import { BackendStatus } from "./backend.ts";
import type { DeferredCallStore } from "./deferred-calls.ts";
import { DoneStatus, type EventName, type StreamEvent } from "./event.ts";
import type { Owner } from "./ids.ts";
import type { Message, UserMessage } from "./message.ts";
import type { Metadata, Parent, RunRecord, RunRequest, Thread, ThreadStatus } from "./records.ts";

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
}

export interface NewRun {
  readonly id: string;
  readonly thread_id: string;
  readonly agent: string;
  readonly request: RunRequest;
  readonly metadata: z.infer<typeof Metadata>;
  readonly idempotency_key?: string;
  /** The run that it goes on with. */
  readonly resumes?: string;
  /**
   * The id of a message: this one and all after it are forgotten as the run is accepted, and so are the thread's calls
   * that wait for results, but not those that it has left. Only on a thread that is free (else `thread_busy`, for every
   * `whenBusy`) and that has the message (else `invalid_request`).
   */
  readonly rewind_to?: string;
}

export interface NewThread {
  readonly id: string;
  /** Whose it is until its first run says otherwise. */
  readonly agent?: string;
  readonly title?: string;
  readonly metadata: z.infer<typeof Metadata>;
  readonly parent?: Parent;
  /** What it begins with. */
  readonly messages?: readonly Message[];
  readonly state?: Readonly<Record<string, unknown>>;
}

export type StartResult =
  /** Accepted and claimed: execute it. */
  | { readonly outcome: "claimed"; readonly claim: Claim }
  /** Accepted; it waits for its thread. */
  | { readonly outcome: "queued"; readonly run: RunRecord }
  /** The idempotency key is that of this run. */
  | { readonly outcome: "known"; readonly run: RunRecord };

export interface Page<T> {
  readonly items: T[];
  /** Give it back to get the next page; absent on the last one. */
  readonly next_cursor?: string;
}

export interface ThreadQuery {
  readonly limit: number;
  readonly cursor?: string;
  readonly agent?: string;
  readonly status?: ThreadStatus;
  /** Part of the title, in any case. */
  readonly q?: string;
  /** Only threads that work for this one. Without it, only those that work for none, unless `children`. */
  readonly parent?: string;
  /** Those that work for others as well. */
  readonly children?: true;
}

export interface ThreadStore {
  /** With all that it begins with, as one. Throws `already_exists`. */
  create(owner: Owner, thread: NewThread): Promise<Thread>;
  get(owner: Owner, id: string): Promise<Thread | undefined>;
  /** Newest change first. */
  list(owner: Owner, query: ThreadQuery): Promise<Page<Thread>>;
  /** `forget` names values of its state that go; with it, throws `thread_busy` while a run is active or waits. */
  update(
    owner: Owner,
    id: string,
    change: { title?: string; metadata?: Thread["metadata"]; forget?: readonly string[] },
  ): Promise<Thread | undefined>;
  /** With its runs and events. False when there is none; throws `thread_busy` while a run is active or waits. */
  delete(owner: Owner, id: string): Promise<boolean>;
  /** The messages, oldest first; a copy. `after` is a message id. */
  messages(owner: Owner, id: string, window?: { after?: string; limit?: number }): Promise<Message[]>;
  /** Forgets messages and state, keeps the thread. As `delete`, otherwise. */
  clear(owner: Owner, id: string): Promise<boolean>;
  state(owner: Owner, id: string): Promise<Record<string, unknown>>;
}

export interface RunStore {
  /** How long a run is its holder's that does not renew its lease, in ms. */
  readonly leaseMs: number;
  /**
   * Accepts a run in one step: creates the thread if there is none, and claims the run if the thread is free.
   * A busy thread throws `thread_busy`, or keeps the run waiting when `queue` (full: `queue_full`); `front`
   * puts it before the others, and has a place of its own beyond the queue's length.
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
   * Throws `limit_exceeded` when runs are active or wait on too many threads of the tenant already.
   */
  enqueue(
    owner: Owner,
    run: NewRun,
    whenBusy: WhenBusy,
  ): Promise<Exclude<StartResult, { outcome: "claimed" }>>;
  /**
   * Takes the thread's run whose process died, one attempt later, or else its next waiting run, if the thread is free.
   */
  claimNext(owner: Owner, threadId: string): Promise<Claim | undefined>;
  /**
   * Takes over runs whose process died, one attempt later, and waiting runs whose thread is free; `limit` at most,
   * one of each tenant in turn, those first that wait longest.
   */
  claimAbandoned(limit: number): Promise<Claim[]>;
  /**
   * Gives a run back: whoever looks next takes it over, one epoch later. That does not count among the attempts in
   * which a process died. Throws `lease_lost`.
   */
  release(lease: Lease): Promise<void>;
  /**
   * Calls `listener` when another process, or this one, asks something of whoever executes runs. At most once: who
   * relies on it looks by itself now and then. One listener; it must not throw.
   */
  listen(listener: (call: RunCall) => void): void;
  /**
   * The thread's run that was begun next after the run `after`, of all its runs the first for `""`; without `after`,
   * the one that was begun last. Runs that ended without ever having been begun are passed over.
   */
  begun(owner: Owner, threadId: string, after?: string): Promise<RunRecord | undefined>;
  /** Asks a run to end. One that only waits is ended at once. Returns it as it is after that. */
  requestStop(owner: Owner, threadId: string, runId: string, mode: StopMode): Promise<RunRecord | undefined>;
  /**
   * Leaves a message for a running run. False when it is not running. Throws `queue_full`. What the run does not
   * take in any more joins the thread when it ends, as an `on_message` before its last event.
   */
  steer(owner: Owner, threadId: string, runId: string, message: UserMessage): Promise<boolean>;
  /** The messages left for a run that are not in the thread yet. */
  inbox(lease: Lease): Promise<UserMessage[]>;
  /** Keeps the lease. Returns what the run was asked meanwhile. Throws `lease_lost`. */
  renew(lease: Lease): Promise<{ stop?: StopMode }>;
}
export type StopMode = "cancel" | "interrupt";
export type WhenBusy = "reject" | "queue" | "front";

/** `stop`: that run was asked to. `waiting`: there are runs that nobody executes. */
export type RunCall =
  | { readonly call: "stop"; readonly run_id: string; readonly mode: StopMode }
  | { readonly call: "waiting" };

/** One event as it was written: what viewers get, now and later. */
export interface LogEntry {
  readonly epoch: number;
  /** 1, 2, 3 … without a hole over all attempts of a run. */
  readonly seq: number;
  readonly event: EventName;
  /** The StreamEvent, serialised once. */
  readonly json: string;
}

/** Where a reader stands in a log: at the entry `seq` that `epoch` wrote; without an epoch, that any epoch wrote. */
export interface Cursor {
  readonly seq: number;
  readonly epoch?: number;
}

export interface EventLog {
  /**
   * Writes events, in order, and what they mean, as one: `on_message` adds to the thread, `on_state` changes a
   * slot, `done` and `error` settle the run, free its thread and end its log. Events with a `path` belong to
   * another thread and change nothing. Resolves when written; only what is written is ever read.
   * Throws `lease_lost` when the lease is old: then nothing was written.
   */
  append(lease: Lease, events: readonly StreamEvent[]): Promise<void>;
  /** The numbers of the first and the last entry that are still held; both 0 when there are none. */
  bounds(run: RunKey): Promise<{ first: number; last: number }>;
  /**
   * The number of the last entry that a reader at `cursor` has seen of the log as it is now: the cursor's own, unless the
   * log has lost that entry, or another epoch has written it.
   */
  seen(run: RunKey, cursor: Cursor): Promise<number>;
  /**
   * The entries after `after`, in batches, first those that are there, then live; ends after the terminal
   * event or when `signal` aborts. Throws `events_expired` when entries after `after` are gone, when `after` is
   * beyond the end, and as soon as the log is not what the reader has seen: see `seen`.
   */
  read(
    run: RunKey,
    after: number | Cursor,
    signal: AbortSignal,
  ): AsyncGenerator<readonly LogEntry[], void, void>;
}

/** What runs and their viewers need of a store. The stores room adds what other rooms keep there. */
export interface Stores {
  readonly threads: ThreadStore;
  readonly runs: RunStore;
  readonly events: EventLog;
  readonly deferredCalls: DeferredCallStore;
  readonly items: ItemStore;
  readonly bus: EventBus;
  /** Whether runs can go on after this process, in it or in another one. */
  readonly isDurable: boolean;
  /** What the processes that use these stores have in common; nothing when there is only this one. */
  readonly shared?: {
    /** A name that all of them know, and nobody else. Made once. */
    readonly deployment: string;
    /** A secret that all of them know. Made once. */
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

// The bus carries what happens outside of a single run: at most once, and only to current listeners.
const Run = { thread_id: z.string(), run_id: z.string(), agent: z.string() };

export const UserEvent = z
  .discriminatedUnion("event", [
    z.object({ event: z.literal("backend_status"), data: BackendStatus }),
    z.object({ event: z.literal("run_started"), data: z.object(Run) }),
    z.object({ event: z.literal("run_ended"), data: z.object({ ...Run, status: DoneStatus }) }),
    z.object({ event: z.literal("config_changed"), data: z.object({}) }),
  ])
  .meta({ id: "UserEvent" });
export type UserEvent = z.infer<typeof UserEvent>;

/** What is the same for everybody. */
export type Announcement = Extract<UserEvent, { event: "config_changed" }>;

export interface EventBus {
  /** Never waits and never throws: who does not listen, or listens too slowly, misses it. */
  publish(owner: Owner, event: UserEvent): void;
  /** To everyone who listens by this process; the others tell it to their own. Never waits and never throws. */
  announce(event: Announcement): void;
  /**
   * What is published from the call on, in order, until `signal` aborts or it is returned. One that falls more
   * than 1,000 events behind throws `events_expired`, then or as soon as it is pulled, and hears no more. Throws
   * `unavailable` when the store is closed.
   */
  subscribe(owner: Owner, signal: AbortSignal): AsyncGenerator<UserEvent, void, void>;
}

// Items are small documents beside threads: shared by a thread and its subagents, or kept by a user for an agent.
// Each is written whole; a writer that must not overwrite another passes the version it has read.
/** Of one shelf. */
export const MAX_ITEMS = 256;
/** Of an item's value as JSON, in bytes. */
export const MAX_ITEM_BYTES = 64 * 1024;
/** Of an item's key, in characters. */
export const MAX_KEY_CHARS = 256;

/**
 * Where items lie: with a thread, which they leave with (a cleared thread has none), or with an owner's agent, where they
 * stay until they are deleted.
 */
export interface Shelf {
  readonly owner: Owner;
  readonly of: { readonly thread: string } | { readonly agent: string };
  readonly kind: "notes" | "tasks" | "reflections" | "settings";
}

export interface Item {
  readonly key: string;
  /** JSON; a copy. */
  readonly value: unknown;
  /** 1, 2, 3 … with each `put`; a deleted key begins anew. */
  readonly version: number;
  readonly updated_at: string;
}

export interface NewItem {
  readonly key: string;
  readonly value: unknown;
  /** Write only if the item is at this version; 0: only if there is none. Without it: in any case. */
  readonly version?: number;
}

export interface ItemStore {
  get(shelf: Shelf, key: string): Promise<Item | undefined>;
  /** All of a shelf, last changed first; of those changed in the same millisecond, by key. */
  list(shelf: Shelf): Promise<Item[]>;
  /**
   * Writes one item, atomically. Nothing, and nothing written, when it is not at `item.version`. Throws `not_found` when
   * the shelf's thread is not there, `limit_exceeded` for one item more than `MAX_ITEMS`, or one that is too large.
   */
  put(shelf: Shelf, item: NewItem): Promise<Item | undefined>;
  /** False when there was none. */
  delete(shelf: Shelf, key: string): Promise<boolean>;
}
