// Rows of the log as the scripts take and return them, and as they come on a run's channel. A row's id is
// `<epoch>-<seq of its last entry>`; its text is the event's name and the entries, one in a line.

import type { LogEntry } from "../../../agent/core/stores.ts";
import type { EventName } from "../../../protocol/event.ts";
import { entriesOfRow, rowsOf } from "../log-rows.ts";
import type { PendingEvent } from "../outcomes.ts";

/** A number of entries, their text, a number, a text … */
export const argsOfRows = (pending: readonly PendingEvent[]): string[] =>
  rowsOf(pending).flatMap(({ event, body, count }) => [String(count), `${event}\n${body}`]);

/** The entries of rows as the scripts return them: id, text, id, text … */
export function entriesOf(rows: readonly string[]): LogEntry[] {
  const entries: LogEntry[] = [];
  for (let at = 0; at < rows.length; at += 2) entries.push(...entriesIn(rows[at] ?? "", rows[at + 1] ?? ""));
  return entries;
}

/** The seq of a message's last entry. */
export const lastSeqOf = (message: string) =>
  Number(message.slice(message.indexOf("-") + 1, message.indexOf(" ")));

/** The epoch that has sent a message. */
export const epochOf = (message: string) => Number(message.slice(0, message.indexOf("-")));

/** The entries of a message: an id, a space, a text. */
export function entriesOfMessage(message: string): LogEntry[] {
  const space = message.indexOf(" ");
  return entriesIn(message.slice(0, space), message.slice(space + 1));
}

function entriesIn(id: string, text: string): LogEntry[] {
  const [epoch = 0, last = 0] = id.split("-").map(Number);
  const line = text.indexOf("\n");
  // `argsOfRows` has written the name.
  return entriesOfRow({ event: text.slice(0, line) as EventName, body: text.slice(line + 1) }, epoch, last);
}
