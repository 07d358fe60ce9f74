// Rows of the tables: log entries (one in a row, or consecutive deltas, one in a line), and runs.

import type { EventName } from "../../core/event.ts";
import type { RunRecord, RunStatus } from "../../core/records.ts";
import type { LogEntry, StopMode } from "../../core/stores.ts";

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

export interface RunRow {
  readonly owner: string;
  readonly thread_id: string;
  readonly id: string;
  readonly agent: string;
  readonly status: RunStatus;
  readonly attempt: number;
  /** Attempts that ended because the run was given back. */
  readonly released: number;
  readonly resumes: string | null;
  readonly stop_reason: string | null;
  readonly error: string | null;
  readonly usage: string;
  readonly metadata: string;
  readonly stop: StopMode | null;
  readonly created_at: number;
  readonly ended_at: number | null;
}

/** All of it but the request, which may be long. */
export const RUN_COLUMNS =
  "owner, thread_id, id, agent, status, attempt, released, resumes, stop_reason, error, usage, metadata, stop, created_at, ended_at";

export function toRecord(row: RunRow): RunRecord {
  const { id, thread_id, agent, status, attempt, resumes, stop_reason, error, usage, metadata, ended_at } =
    row;
  return {
    ...{ id, thread_id, agent, status, attempt },
    ...(resumes === null ? {} : { resumes }),
    ...(stop_reason === null ? {} : { stop_reason }),
    ...(error === null ? {} : { error: JSON.parse(error) }),
    ...{ usage: JSON.parse(usage), metadata: JSON.parse(metadata) },
    created_at: new Date(row.created_at).toISOString(),
    ...(ended_at === null ? {} : { ended_at: new Date(ended_at).toISOString() }),
  };
}
