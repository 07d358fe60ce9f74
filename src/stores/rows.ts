// Rows of the tables of log entries and runs.

import type { RunRecord, RunStatus } from "../core/records.ts";
import type { LogEntry, StopMode } from "../core/stores.ts";
import { entriesOfRow, type LogRow } from "./log-rows.ts";

export interface EventRow extends LogRow {
  /** The number of the row's last entry. */
  readonly last_seq: number;
  readonly epoch: number;
}

export const entriesOf = (row: EventRow): LogEntry[] => entriesOfRow(row, row.epoch, row.last_seq);

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

/**
 * SQL: a thread works for no other one whose run waits with it. A quote in a name is escaped in `parent`, which is JSON.
 */
export const ASKS_ITSELF = `(parent IS NULL OR parent LIKE '%"background":true%')`;

/** All of it but the request, which may be long. */
export const RUN_COLUMNS =
  "owner, thread_id, id, agent, status, attempt, released, resumes, stop_reason, error, usage, metadata, stop, created_at, ended_at";

export function toRecord(row: Omit<RunRow, "owner" | "released" | "stop">): RunRecord {
  const { id, thread_id, agent, status, attempt, resumes, stop_reason, error, usage, metadata, ended_at } =
    row;
  return {
    id,
    thread_id,
    agent,
    status,
    attempt,
    ...(resumes === null ? {} : { resumes }),
    ...(stop_reason === null ? {} : { stop_reason }),
    ...(error === null ? {} : { error: JSON.parse(error) }),
    usage: JSON.parse(usage),
    metadata: JSON.parse(metadata),
    created_at: new Date(row.created_at).toISOString(),
    ...(ended_at === null ? {} : { ended_at: new Date(ended_at).toISOString() }),
  };
}
