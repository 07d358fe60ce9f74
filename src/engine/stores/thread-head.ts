// The part of a thread that decisions are based on, and their primitive effects. Both are the same in every store.

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
  /** Ids of the waiting runs, the next one first. */
  readonly queue: readonly string[];
}

export interface ActiveRun {
  readonly run: string;
  /** Fences writes: only the holder of the newest epoch may append. */
  readonly epoch: number;
  readonly attempt: number;
  /** Number of attempts that ended although their process was alive: it returned the run, or lost it and reported that. */
  readonly released: number;
  readonly stop: StopMode | undefined;
}

export interface StoredRun {
  readonly record: RunRecord;
  /** Undefined if the run has ended. */
  readonly request: RunRequest | undefined;
}

export type CallHead = Omit<DeferredCall, "reply">;

/** Values that a decision needs in addition to the head. */
export interface Lookups {
  /** An idempotency key: `View.known`. */
  readonly key?: string | undefined;
  /** A run's id: `View.run`. */
  readonly run?: string | undefined;
  /** The next run to take, that is the active one or else the first waiting one: `View.next`. */
  readonly next?: true | undefined;
  /** A message's id: `View.hasMessage`. */
  readonly message?: string | undefined;
  /** A message's id: `View.isLast`. */
  readonly last?: string | undefined;
  /** The queued messages of the active run: `View.inbox`. */
  readonly inbox?: true | undefined;
  /** A deferred call's id: `View.call`. */
  readonly call?: string | undefined;
  /** All deferred calls of the thread: `View.calls`. */
  readonly calls?: true | undefined;
  /** Number of other busy threads of the tenant: `View.busyThreads`. */
  readonly busyThreads?: true | undefined;
  /** Everything that this lease's holder has appended is written before the thread is loaded. */
  readonly after?: Lease | undefined;
  /** The thread is probably new: a store may decide on an absent thread before it checks. */
  readonly isLikelyNew?: boolean | undefined;
}

/** A thread at one moment, with the values that were looked up. Without a head, there is no such thread. */
export interface View {
  /** The store's clock. */
  readonly now: number;
  readonly head: ThreadHead | undefined;
  /**
   * When the active run may be taken over; 0 if no process holds it. An expired lease is not 0: its holder may write
   * and renew until another process takes the run.
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

/** Messages that were staged for a new thread: see `Kernel.stage`. */
export interface Staged {
  readonly token: string;
  readonly count: number;
  /** Bytes of the messages as JSON. */
  readonly bytes: number;
}

/**
 * One effect. The effects of a decision are carried out atomically and in order. `headAfter` computes the resulting
 * head. The thread's `updated_at` changes with `add_run`, `cancel_run`, `describe_thread` and `clear_thread`, and with
 * events that change more than the log (see `EventWrite`).
 */
export type Write =
  /**
   * Only valid if there is no such thread. Messages with the same id count once. `staged`: the thread begins with the
   * staged messages instead of its own.
   */
  | { readonly write: "create_thread"; readonly thread: NewThread; readonly staged?: Staged | undefined }
  /** Adds a new run, `pending`, newest of its thread. The thread then has the run's agent. */
  /** `title`: title for a thread without one. */
  | { readonly write: "add_run"; readonly run: NewRun; readonly title: string | undefined }
  | { readonly write: "queue_run"; readonly run: string; readonly front: boolean }
  /** The run leaves the queue, becomes active and is held for a lease. `begins`: true if it never began before. */
  | {
      readonly write: "hold_run";
      readonly run: string;
      readonly epoch: number;
      readonly attempt: number;
      readonly begins: boolean;
    }
  /** Restarts the lease of the active run now, under its epoch. */
  | { readonly write: "renew_run" }
  /** No process holds the active run any more. Increments `released`. */
  | { readonly write: "release_run" }
  /** Increments `released`: an earlier attempt of the active run was no crash. */
  | { readonly write: "excuse_run" }
  | { readonly write: "stop_run"; readonly mode: StopMode }
  /** A waiting run leaves the queue and ends. `pending` is its complete log, under epoch 1. The thread's settled status stays. */
  | {
      readonly write: "cancel_run";
      readonly run: string;
      readonly pending: readonly PendingEvent[];
      readonly ending: RunOutcome;
    }
  /** Adds to the inbox of the active run. */
  | { readonly write: "leave_message"; readonly message: UserMessage }
  /** Removes this message and all later ones. */
  | { readonly write: "rewind"; readonly message: string }
  /** Omitted values stay unchanged. */
  | {
      readonly write: "describe_thread";
      readonly title?: string | undefined;
      readonly metadata?: Thread["metadata"] | undefined;
      /** Values of the state to delete. */
      readonly forget?: readonly string[] | undefined;
    }
  /** Removes messages, state, deferred calls, and the documents of the thread, which becomes `idle`. */
  | { readonly write: "clear_thread" }
  | { readonly write: "delete_thread" }
  /** Replaces the stored call. `due_at`: when the thread must be checked for it. */
  | { readonly write: "put_call"; readonly call: DeferredCall; readonly due_at: number | undefined }
  | { readonly write: "drop_call"; readonly call_id: string; readonly token_hash: string };

export interface Decision<R> {
  /** Without writes, nothing is committed. */
  readonly writes: readonly Write[];
  /** `now` is the time of the commit. */
  readonly result: (now: number) => R;
  /** Published after the commit to the processes that execute runs. */
  readonly tell?: ControlMessage | undefined;
}

/** Returns the head after one effect. Undefined if the thread is deleted. */
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

/** Returns the run that a new one would have to wait for. */
export const runAhead = ({ active, queue }: ThreadHead): string | undefined => active?.run ?? queue[0];

/** True if an effect needs room: a full store refuses it. */
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
