// Turns a batch of a run's events into writes: log entries and changes to the thread. Every store carries out these
// writes.

import type { UserMessage } from "../../agent/core/message.ts";
import type { ThreadStatus } from "../../agent/core/records.ts";
import {
  changeOf,
  changesThread,
  endingOf,
  type MessageText,
  type PendingEvent,
  type RunOutcome,
  type Stamp,
  THREAD_STATUS,
  withUnreadInbox,
} from "./outcomes.ts";

export type EventWrite =
  /**
   * Adds the message to the thread, unless the thread has a message with this id, and removes it from the run's inbox.
   */
  | { readonly write: "add_message"; readonly message: MessageText }
  | { readonly write: "set_state"; readonly key: string; readonly value: unknown }
  | { readonly write: "delete_state"; readonly key: string }
  /** Merges the patch into the value; see `merge` in protocol/patch.ts. */
  | { readonly write: "patch_state"; readonly key: string; readonly patch: Record<string, unknown> }
  /**
   * Always the last write. Empties the run's inbox. `thread` is the new status of the thread, unless another run is
   * active or waiting.
   */
  | {
      readonly write: "end_run";
      readonly outcome: RunOutcome;
      readonly thread: Exclude<ThreadStatus, "busy">;
    };

export type StateWrite = Extract<EventWrite, { readonly key: string }>;
export type RunEnd = Extract<EventWrite, { readonly write: "end_run" }>;

export interface EventWrites {
  /** The events to append to the log. */
  readonly appended: readonly PendingEvent[];
  /** The changes other than log entries, in order. Empty for a batch that only shows progress. */
  readonly writes: readonly EventWrite[];
}

/** The state before a batch that ends its run. */
export interface BeforeEnd {
  /** The run's queued messages. Messages that no event contains are added to the thread before the end. */
  readonly inbox: readonly UserMessage[];
  readonly stamp: Stamp;
}

/** `before` is required for a batch that ends the run. */
export function writesOf(batch: readonly PendingEvent[], before?: BeforeEnd): EventWrites {
  const appended = before ? withUnreadInbox(batch, before.inbox, before.stamp) : batch;
  return { appended, writes: appended.filter(changesThread).map(writeOf) };
}

function writeOf(pending: PendingEvent): EventWrite {
  if (pending.message) return { write: "add_message", message: pending.message };
  const change = changeOf(pending);
  if (change.event === "on_state") {
    const { key, value, patch } = change.data;
    if (patch) return { write: "patch_state", key, patch };
    return value === undefined ? { write: "delete_state", key } : { write: "set_state", key, value };
  }
  const outcome = endingOf(change);
  return { write: "end_run", outcome, thread: THREAD_STATUS[outcome.status] };
}

/** Returns the end of the run if it is the last write. */
export function endIn(writes: readonly EventWrite[]): RunEnd | undefined {
  const last = writes.at(-1);
  return last?.write === "end_run" ? last : undefined;
}

export const messagesIn = (writes: readonly EventWrite[]): MessageText[] =>
  writes.flatMap((each) => (each.write === "add_message" ? each.message : []));
