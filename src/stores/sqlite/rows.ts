// How entries lie in the table: one in a row, or several deltas that follow each other, one in a line.

import type { EventName } from "../../core/event.ts";
import type { LogEntry } from "../../core/stores.ts";

/** Deltas in one row, at most. */
const ROW_ENTRIES = 64;
const DELTA = "on_chat_model_stream";

export interface EventRow {
  /** The number of the row's last entry. */
  readonly last_seq: number;
  readonly epoch: number;
  readonly event: EventName;
  /** JSON has no line breaks of its own. */
  readonly body: string;
}

export function rowsOf(entries: readonly LogEntry[]): EventRow[] {
  const rows: EventRow[] = [];
  for (let from = 0; from < entries.length; ) {
    const to = endOfRow(entries, from);
    const row = entries.slice(from, to);
    const last = row.at(-1);
    if (last) {
      const { epoch, event, seq } = last;
      rows.push({ last_seq: seq, epoch, event, body: row.map(({ json }) => json).join("\n") });
    }
    from = to;
  }
  return rows;
}

function endOfRow(entries: readonly LogEntry[], from: number): number {
  let to = from + 1;
  if (entries[from]?.event !== DELTA) return to;
  while (to < from + ROW_ENTRIES && entries[to]?.event === DELTA) to++;
  return to;
}

export function entriesOf({ last_seq, epoch, event, body }: EventRow): LogEntry[] {
  const lines = body.split("\n");
  const first = last_seq - lines.length + 1;
  return lines.map((json, index) => ({ epoch, seq: first + index, event, json }));
}
