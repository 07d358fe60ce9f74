// The part of a thread on which decisions are based, and the effects that make up a decision. Both are the same for
// every store.

import type { DeferredCall } from "../../agent/core/deferred-calls.ts";
import type { UserMessage } from "../../agent/core/message.ts";
import type { RunRecord, RunRequest, Thread } from "../../agent/core/records.ts";
import type { ControlMessage, Lease, NewRun, NewThread, StopMode } from "../../agent/core/stores.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { PendingEvent, RunOutcome } from "./outcomes.ts";

export interface ThreadHead {
  readonly owner: Owner;
  readonly id: string;
  /** At most one run of a thread is active. */
  readonly active: ActiveRun | undefined;
  /** The ids of the waiting runs, starting with the next one. */
  readonly queue: readonly string[];
}

export interface ActiveRun {
  readonly run: string;
  /** Fences writes, because only the holder of the newest epoch can append. */
  readonly epoch: number;
  readonly attempt: number;
  /**
   * The number of attempts that ended without a crash. The process was alive, but returned the run, or lost it and
   * reported that.
   */
  readonly released: number;
  readonly stop: StopMode | undefined;
}

export interface StoredRun {
  readonly record: RunRecord;
  /** Undefined if the run has ended. */
  readonly request: RunRequest | undefined;
}

export type CallHead = Omit<DeferredCall, "reply">;

/** The values that a decision needs in addition to the head. */
export interface Lookups {
  /** Looks up an idempotency key; see `View.known`. */
  readonly key?: string | undefined;
  /** Looks up a run by id; see `View.run`. */
  readonly run?: string | undefined;
  /** Looks up the next run to take, which is the active run or else the first waiting one; see `View.next`. */
  readonly next?: true | undefined;
  /** Looks up a message by id; see `View.hasMessage`. */
  readonly message?: string | undefined;
  /** Looks up whether this is the id of the last message; see `View.isLast`. */
  readonly last?: string | undefined;
  /** Looks up the queued messages of the active run; see `View.inbox`. */
  readonly inbox?: true | undefined;
  /** Looks up a deferred call by id; see `View.call`. */
  readonly call?: string | undefined;
  /** Looks up all deferred calls of the thread; see `View.calls`. */
  readonly calls?: true | undefined;
  /** Looks up the number of other busy threads of the tenant; see `View.busyThreads`. */
  readonly busyThreads?: true | undefined;
  /** Everything that this lease's holder has appended is written before the thread is loaded. */
  readonly after?: Lease | undefined;
  /** The thread is probably new, so a store can make the decision for an absent thread before it checks. */
  readonly isLikelyNew?: boolean | undefined;
}

/** A snapshot of a thread, with the values that were looked up. Without a head, the thread does not exist. */
export interface View {
  /** The store's time. */
  readonly now: number;
  readonly head: ThreadHead | undefined;
  /**
   * The time at which another process can take over the active run, or 0 if no process holds it. An expired lease is
   * not 0, because its holder can write and renew until another process takes the run.
   */
  readonly until: number;
  readonly known?: RunRecord | undefined;
  readonly run?: StoredRun | undefined;
  readonly next?: StoredRun | undefined;
  readonly hasMessage?: boolean | undefined;
  readonly isLast?: boolean | undefined;
  /** The ids of the messages. */
  readonly inbox?: readonly string[] | undefined;
  readonly call?: DeferredCall | undefined;
  readonly calls?: readonly CallHead[] | undefined;
  readonly busyThreads?: number | undefined;
}

/** The messages that were staged for a new thread; see `Kernel.stage`. */
export interface StagedMessages {
  readonly token: string;
  readonly count: number;
  /** The size of the messages in bytes, as JSON. */
  readonly bytes: number;
}

/**
 * One effect of a decision. All effects of a decision are carried out atomically and in order. `headAfter` computes the
 * resulting head. The thread's `updated_at` changes with `add_run`, `cancel_run`, `describe_thread` and `clear_thread`,
 * and with events that change more than the log (see `EventWrite`).
 */
export type Write =
  /**
   * Only valid if the thread does not exist. Messages with the same id count once. `staged` means that the thread
   * begins with the staged messages instead of its own.
   */
  | {
      readonly write: "create_thread";
      readonly thread: NewThread;
      readonly staged?: StagedMessages | undefined;
    }
  /** Adds a new run with the status `pending` as the newest of its thread. The thread then has the run's agent. */
  /** `title` is the new title if the thread has none. */
  | { readonly write: "add_run"; readonly run: NewRun; readonly title: string | undefined }
  | { readonly write: "queue_run"; readonly run: string; readonly front: boolean }
  /** Makes a queued run active and holds it for a lease. `begins` is true if the run has never begun before. */
  | {
      readonly write: "hold_run";
      readonly run: string;
      readonly epoch: number;
      readonly attempt: number;
      readonly begins: boolean;
    }
  /** Restarts the lease of the active run now, under the same epoch. */
  | { readonly write: "renew_run" }
  /** Records that no process holds the active run anymore. Increments `released`. */
  | { readonly write: "release_run" }
  /** Increments `released`, because an earlier attempt of the active run was not a crash. */
  | { readonly write: "excuse_run" }
  | { readonly write: "stop_run"; readonly mode: StopMode }
  /**
   * Removes a waiting run from the queue and ends it. `pending` is its complete log, under epoch 1. The thread keeps
   * its settled status.
   */
  | {
      readonly write: "cancel_run";
      readonly run: string;
      readonly pending: readonly PendingEvent[];
      readonly ending: RunOutcome;
    }
  /** Adds a message to the inbox of the active run. */
  | { readonly write: "leave_message"; readonly message: UserMessage }
  /** Removes this message and all later messages. */
  | { readonly write: "rewind"; readonly message: string }
  /** Omitted values stay unchanged. */
  | {
      readonly write: "describe_thread";
      readonly title?: string | undefined;
      readonly metadata?: Thread["metadata"] | undefined;
      /** The values of the state to delete. */
      readonly forget?: readonly string[] | undefined;
    }
  /** Removes the thread's messages, state, deferred calls and documents. The thread becomes `idle`. */
  | { readonly write: "clear_thread" }
  | { readonly write: "delete_thread" }
  /** Replaces the stored call. `due_at` is the time at which the thread must be checked because of this call. */
  | { readonly write: "put_call"; readonly call: DeferredCall; readonly due_at: number | undefined }
  | { readonly write: "drop_call"; readonly call_id: string; readonly token_hash: string };

export interface Decision<R> {
  /** If there are no writes, nothing is committed. */
  readonly writes: readonly Write[];
  /** `now` is the time of the commit. */
  readonly result: (now: number) => R;
  /** A message to publish after the commit to the processes that execute runs. */
  readonly tell?: ControlMessage | undefined;
}

/** Returns the head after one effect, or undefined if the thread is deleted. */
export function headAfter(head: ThreadHead | undefined, write: Write, owner: Owner): ThreadHead | undefined {
  if (write.write === "create_thread") return { owner, id: write.thread.id, active: undefined, queue: [] };
  if (!head) return undefined;
  const { active, queue } = head;
  switch (write.write) {
    case "delete_thread":
      return undefined;
    case "queue_run":
      return { ...head, queue: write.front ? [write.run, ...queue] : [...queue, write.run] };
    case "hold_run": {
      const { run, epoch, attempt } = write;
      const { released = 0, stop } = active ?? {};
      return { ...head, active: { run, epoch, attempt, released, stop }, queue: without(queue, run) };
    }
    case "release_run":
    case "excuse_run":
      return active ? { ...head, active: { ...active, released: active.released + 1 } } : head;
    case "stop_run":
      return active ? { ...head, active: { ...active, stop: write.mode } } : head;
    case "cancel_run":
      return { ...head, queue: without(queue, write.run) };
    default:
      return head;
  }
}

/** Returns the head after its active run has ended. */
export const headAfterEnd = (head: ThreadHead): ThreadHead => ({ ...head, active: undefined });

const without = (queue: readonly string[], run: string) => queue.filter((id) => id !== run);

/** Returns the run that a new run would have to wait for. */
export const runAhead = ({ active, queue }: ThreadHead): string | undefined => active?.run ?? queue[0];

/** Returns true if an effect needs room, so a full store refuses it. */
export function needsRoom(write: Write): boolean {
  switch (write.write) {
    case "create_thread":
    case "add_run":
    case "leave_message":
    case "describe_thread":
      return true;
    case "put_call":
      return write.call.state === "sent" || write.call.reply !== undefined;
    default:
      return false;
  }
}
