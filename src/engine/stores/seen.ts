// Determines how much of the current log a returning reader has seen. A store that lost its most recent writes in a
// failover or a power failure continues under a new epoch and reuses the numbers of the lost entries.

import type { Cursor } from "../../agent/core/stores.ts";
import { eventsExpired } from "./errors.ts";

/** The readable entries of a run. If there are none, `first` is one more than `last`. */
export interface LogWindow {
  readonly first: number;
  readonly last: number;
  /** Returns the epoch of a readable entry. Epochs never decrease along a log. */
  epochOf(seq: number): number | undefined;
}

/**
 * Returns the number of the last entry that a reader at `cursor` has seen. This is the cursor's own number unless that
 * entry was lost or replaced.
 */
export function seenOf(held: LogWindow, { seq, epoch }: Cursor): number {
  const { first, last, epochOf } = held;
  const before = first - 1;
  if (epoch === undefined) return Math.max(before, Math.min(seq, last));
  // The entry itself is no longer stored, but the next one is enough.
  if (seq === before && (last < first || (epochOf(first) ?? 0) >= epoch)) return seq;
  if (seq >= first && seq <= last && epochOf(seq) === epoch) return seq;
  let [low, high] = [before, Math.max(before, Math.min(seq, last))];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((epochOf(middle) ?? 0) <= epoch) low = middle;
    else high = middle - 1;
  }
  // If no entry of the epoch is left, it is unknown where the logs start to differ.
  return low > before && epochOf(low) === epoch ? low : before;
}

/** Throws `events_expired` if the log differs from what a reader at `cursor` has seen. */
export function assertSeen(held: LogWindow, cursor: Cursor): void {
  if (seenOf(held, cursor) !== cursor.seq) throw eventsExpired(cursor.seq);
}
