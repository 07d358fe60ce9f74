// Stores log entries in rows: one entry per row, or several consecutive deltas in one row, one per line. JSON contains
// no line breaks.

import type { LogEntry } from "../../agent/core/stores.ts";
import type { EventName } from "../../protocol/event.ts";
import type { PendingEvent } from "./outcomes.ts";

/** The maximum number of deltas in one row, and the maximum number of characters in these deltas. */
const ROW_ENTRIES = 64;
const ROW_LENGTH = 16 * 1024;
const DELTA = "on_chat_model_stream";

export interface LogRow {
  readonly event: EventName;
  readonly body: string;
}

/** `count` is the number of entries in each row. */
export function rowsOf(pending: readonly PendingEvent[]): (LogRow & { readonly count: number })[] {
  const rows = [];
  for (let from = 0; from < pending.length; ) {
    const [first, ...rest] = pending.slice(from, endOfRow(pending, from));
    if (!first) break;
    const body = [first, ...rest].map(({ json }) => json).join("\n");
    rows.push({ event: first.event.event, body, count: 1 + rest.length });
    from += 1 + rest.length;
  }
  return rows;
}

function endOfRow(pending: readonly PendingEvent[], from: number): number {
  let to = from;
  let length = 0;
  do length += pending[to++]?.json.length ?? 0;
  while (isDelta(pending[from]) && isDelta(pending[to]) && to < from + ROW_ENTRIES && length < ROW_LENGTH);
  return to;
}

const isDelta = (pending: PendingEvent | undefined) => pending?.event.event === DELTA;

/** Returns the entries of a row. `last` is the seq of the last entry. */
export function entriesOfRow({ event, body }: LogRow, epoch: number, last: number): LogEntry[] {
  const lines = body.split("\n");
  const first = last - lines.length + 1;
  return lines.map((json, index) => ({ epoch, seq: first + index, event, json }));
}

/** Returns the entries of pending events. `last` becomes the seq of the last entry. */
export function entriesOfPending(pending: readonly PendingEvent[], epoch: number, last: number): LogEntry[] {
  const first = last - pending.length + 1;
  return pending.map(({ event: { event }, json }, index) => ({ epoch, seq: first + index, event, json }));
}
