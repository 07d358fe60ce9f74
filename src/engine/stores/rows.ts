// Rows of the tables for log entries, runs, threads and deferred calls.

import { CallState, type DeferredCall } from "../../agent/core/deferred-calls.ts";
import type { RunRecord, RunStatus, Thread, ThreadStatus } from "../../agent/core/records.ts";
import type { LogEntry, StopMode } from "../../agent/core/stores.ts";
import { entriesOfRow, type LogRow } from "./log-rows.ts";
import { ownerOf } from "./row-keys.ts";
import type { CallHead } from "./thread-head.ts";

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
  /** The number of attempts that ended because the run was returned. */
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

/** SQL condition: the thread has no parent whose run waits for it. `parent` is JSON, so quotes in names are escaped. */
export const ASKS_ITSELF = `(parent IS NULL OR parent LIKE '%"background":true%')`;

/** The columns of a run that `toRecord` reads. */
export type RecordRow = Omit<RunRow, "owner" | "released" | "stop">;
export const RECORD_COLUMNS =
  "thread_id, id, agent, status, attempt, resumes, stop_reason, error, usage, metadata, created_at, ended_at";

/** Encodes a run's error for its row. Includes the limit that ended a run, along with the `stop_reason`. */
export function problemOf({ error, details }: Pick<RunRecord, "error" | "details">): string | null {
  if (error) return JSON.stringify(error);
  if (!details) return null;
  const { message, ...rest } = details;
  return JSON.stringify({ code: "limit_exceeded", message, details: rest });
}

function whyEnded({ error, stop_reason }: Pick<RunRow, "error" | "stop_reason">) {
  if (error === null) return {};
  const problem = JSON.parse(error) as NonNullable<RunRecord["error"]>;
  if (stop_reason === null) return { error: problem };
  const { details, message } = problem;
  return { details: { ...details, message } as NonNullable<RunRecord["details"]> };
}

export function toRecord(row: RecordRow): RunRecord {
  const { id, thread_id, agent, status, attempt, resumes, stop_reason, usage, metadata, ended_at } = row;
  return {
    id,
    thread_id,
    agent,
    status,
    attempt,
    ...(resumes === null ? {} : { resumes }),
    ...(stop_reason === null ? {} : { stop_reason }),
    ...whyEnded(row),
    usage: JSON.parse(usage),
    metadata: JSON.parse(metadata),
    created_at: new Date(row.created_at).toISOString(),
    ...(ended_at === null ? {} : { ended_at: new Date(ended_at).toISOString() }),
  };
}

export interface ThreadRow {
  readonly id: string;
  readonly agent: string | null;
  readonly title: string | null;
  readonly metadata: string;
  readonly parent: string | null;
  readonly forked_from: string | null;
  readonly status: ThreadStatus;
  readonly message_count: number;
  readonly created_at: number;
  readonly updated_at: number;
}

export function toThread(row: ThreadRow): Thread {
  const { id, agent, title, metadata, parent, forked_from, status, message_count } = row;
  return {
    id,
    ...(agent === null ? {} : { agent }),
    ...(title === null ? {} : { title }),
    metadata: JSON.parse(metadata),
    ...(parent === null ? {} : { parent: JSON.parse(parent) }),
    ...(forked_from === null ? {} : { forked_from: JSON.parse(forked_from) }),
    status,
    message_count,
    created_at: new Date(row.created_at).toISOString(),
    updated_at: new Date(row.updated_at).toISOString(),
  };
}

export interface CallRow {
  readonly owner: string;
  readonly thread_id: string;
  readonly call_id: string;
  readonly run_id: string;
  readonly tool: string;
  readonly token_hash: string;
  readonly state: CallState;
  readonly expires_at: number;
}
export type RepliedRow = CallRow & { readonly reply: string | null };

export const CALL_COLUMNS = "owner, thread_id, call_id, run_id, tool, token_hash, state, expires_at";

export function callOf(row: CallRow): CallHead {
  const { thread_id, call_id, run_id, tool, token_hash, state } = row;
  const expires_at = new Date(row.expires_at).toISOString();
  return { owner: ownerOf(row.owner), thread_id, call_id, run_id, tool, token_hash, state, expires_at };
}

export function repliedOf(row: RepliedRow): DeferredCall {
  const call = callOf(row);
  return row.reply === null ? call : { ...call, reply: JSON.parse(row.reply) };
}

/** Returns a SQL list of states for use with `IN`. */
export function statesThat(fits: (state: CallState) => boolean): string {
  return CallState.options
    .filter(fits)
    .map((state) => `'${state}'`)
    .join(", ");
}

/** Returns the columns of a call except its key, in order. */
export const callValues = ({ run_id, tool, token_hash, state, reply, expires_at }: DeferredCall) => [
  run_id,
  tool,
  token_hash,
  state,
  reply === undefined ? null : JSON.stringify(reply),
  Date.parse(expires_at),
];
