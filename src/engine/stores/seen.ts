// Finds how much of the current log a returning reader has seen. A store that was set back (a failover, a power cut) continues
// under another epoch, and reuses the numbers of the entries that it has lost.

import type { Cursor } from "../../agent/core/stores.ts";
import { eventsExpired } from "./errors.ts";

/** The entries of a run that can be read: `first` is one more than `last` when there are none. */
export interface LogWindow {
  readonly first: number;
  readonly last: number;
  /** The epoch of one of them. Epochs only grow along a log. */
  epochOf(seq: number): number | undefined;
}

/** The number of the last entry that a reader at `cursor` has seen: its own, unless that is not there as it was. */
export function seenOf(held: LogWindow, { seq, epoch }: Cursor): number {
  const { first, last, epochOf } = held;
  const before = first - 1;
  if (epoch === undefined) return Math.max(before, Math.min(seq, last));
  // The entry itself is no longer kept; the one after it tells enough.
  if (seq === before && (last < first || (epochOf(first) ?? 0) >= epoch)) return seq;
  if (seq >= first && seq <= last && epochOf(seq) === epoch) return seq;
  let [low, high] = [before, Math.max(before, Math.min(seq, last))];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((epochOf(middle) ?? 0) <= epoch) low = middle;
    else high = middle - 1;
  }
  // Where its epoch wrote nothing that is left, nothing says where the log began to differ.
  return low > before && epochOf(low) === epoch ? low : before;
}

/** Throws `events_expired` when the log is not what a reader at `cursor` has seen. */
export function assertSeen(held: LogWindow, cursor: Cursor): void {
  if (seenOf(held, cursor) !== cursor.seq) throw eventsExpired(cursor.seq);
}
