// How entries lie in a run's stream, and how they come on its channel: one in a row, or several deltas that follow
// each other. A row's id is `<epoch>-<seq of its last entry>`; its text is the event's name and the entries, one in a
// line: JSON has no line breaks of its own.

import type { EventName } from "../../core/event.ts";
import type { LogEntry } from "../../core/stores.ts";
import type { PendingEvent } from "../outcomes.ts";

/** What one row holds at most: so many deltas, or so many characters of them. */
const ROW_ENTRIES = 64;
const ROW_LENGTH = 16 * 1024;
const DELTA = "on_chat_model_stream";

/** Rows as the scripts take them: a number of entries, their text, a number, a text … */
export function rowsOf(pending: readonly PendingEvent[]): string[] {
  const rows: string[] = [];
  for (let from = 0; from < pending.length; ) {
    const to = endOfRow(pending, from);
    const lines = [pending[from]?.event.event, ...pending.slice(from, to).map(({ json }) => json)];
    rows.push(String(to - from), lines.join("\n"));
    from = to;
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

/** The entries of rows as the scripts return them: id, text, id, text … */
export function entriesOf(rows: readonly string[]): LogEntry[] {
  const entries: LogEntry[] = [];
  for (let at = 0; at < rows.length; at += 2)
    entries.push(...entriesOfRow(rows[at] ?? "", rows[at + 1] ?? ""));
  return entries;
}

/** The entries that pending have become, of which the last has `last`. */
export function entriesOfDrafts(pending: readonly PendingEvent[], epoch: number, last: number): LogEntry[] {
  const before = last - pending.length;
  return pending.map(({ event: { event }, json }, index) => ({
    epoch,
    seq: before + index + 1,
    event,
    json,
  }));
}

/** The seq of a message's last entry. */
export const lastSeqOf = (message: string) =>
  Number(message.slice(message.indexOf("-") + 1, message.indexOf(" ")));

/** The epoch that has sent a message. */
export const epochOf = (message: string) => Number(message.slice(0, message.indexOf("-")));

/** The entries of a message: an id, a space, a text. */
export function entriesOfMessage(message: string): LogEntry[] {
  const space = message.indexOf(" ");
  return entriesOfRow(message.slice(0, space), message.slice(space + 1));
}

function entriesOfRow(id: string, text: string): LogEntry[] {
  const [epoch, last] = id.split("-").map(Number);
  const [name, ...lines] = text.split("\n");
  // `rowsOf` has written both.
  const event = name as EventName;
  const first = (last ?? 0) - lines.length + 1;
  return lines.map((json, index) => ({ epoch: epoch ?? 0, seq: first + index, event, json }));
}
