// Rows of the log in the form that scripts take and return, which is also the form on a run's channel. A row's id is
// `<epoch>-<seq of its last entry>`. Its text contains the event's name and the entries, one per line.

import type { LogEntry } from "../../../agent/core/stores.ts";
import type { EventName } from "../../../protocol/event.ts";
import { entriesOfRow, rowsOf } from "../log-rows.ts";
import type { PendingEvent } from "../outcomes.ts";

/** Returns the number of entries and the text of each row. */
export const argsOfRows = (pending: readonly PendingEvent[]): string[] =>
  rowsOf(pending).flatMap(({ event, body, count }) => [String(count), `${event}\n${body}`]);

/** Returns the entries of rows in the scripts' form: id, text, id, text …. */
export function entriesOf(rows: readonly string[]): LogEntry[] {
  const entries: LogEntry[] = [];
  for (let at = 0; at < rows.length; at += 2) entries.push(...entriesIn(rows[at] ?? "", rows[at + 1] ?? ""));
  return entries;
}

/** Returns the seq of a message's last entry. */
export const lastSeqOf = (message: string) =>
  Number(message.slice(message.indexOf("-") + 1, message.indexOf(" ")));

/** Returns the epoch that sent a message. */
export const epochOf = (message: string) => Number(message.slice(0, message.indexOf("-")));

/** Returns the entries of a message: an id, a space, a text. */
export function entriesOfMessage(message: string): LogEntry[] {
  const space = message.indexOf(" ");
  return entriesIn(message.slice(0, space), message.slice(space + 1));
}

function entriesIn(id: string, text: string): LogEntry[] {
  const [epoch = 0, last = 0] = id.split("-").map(Number);
  const line = text.indexOf("\n");
  // Not validated, because `argsOfRows` wrote the name.
  return entriesOfRow({ event: text.slice(0, line) as EventName, body: text.slice(line + 1) }, epoch, last);
}
