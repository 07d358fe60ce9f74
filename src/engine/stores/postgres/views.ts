// Loads a thread with the values that a decision needs, all read at the same moment.

import type { RunRequest } from "../../../agent/core/records.ts";
import type { StopMode } from "../../../agent/core/stores.ts";
import { ownerOf, type ThreadKey } from "../row-keys.ts";
import {
  CALL_COLUMNS,
  type CallRow,
  callOf as callOfRow,
  RECORD_COLUMNS,
  type RecordRow,
  type RepliedRow,
  repliedOf as repliedOfRow,
  toRecord,
} from "../rows.ts";
import { type Lookups, runAhead, type StoredRun, type ThreadHead, type View } from "../thread-head.ts";
import { type Transaction, timeOf } from "./database.ts";

type StoredRow = RecordRow & { readonly request: string | null };

interface ViewRow {
  readonly now: number;
  readonly is_there: boolean | null;
  readonly turn: TurnRow | null;
  readonly queue: readonly string[];
  readonly known: RecordRow | null;
  readonly run: StoredRow | null;
  readonly next: StoredRow | null;
  readonly has_message: boolean;
  readonly is_last: boolean | null;
  readonly inbox: readonly string[] | null;
  readonly call: RepliedRow | null;
  readonly calls: readonly CallRow[] | null;
  readonly busy_threads: number | null;
}

interface TurnRow {
  readonly run_id: string | null;
  readonly epoch: number;
  readonly attempt: number;
  readonly released: number;
  readonly stop: StopMode | null;
  readonly until: number;
}

const THREAD = "owner = $1 AND thread_id = $2";
const one = (columns: string, table: string, which: string) =>
  `(SELECT row_to_json(found) FROM (SELECT ${columns} FROM ${table} WHERE ${THREAD} AND ${which} LIMIT 1) AS found)`;
const all = (columns: string, table: string, order: string) =>
  `(SELECT coalesce(json_agg(${columns} ORDER BY ${order}), '[]') FROM ${table} AS found WHERE ${THREAD}`;
/** The next run: the active run, or else the first waiting one. */
const NEXT = `id = coalesce((SELECT run_id FROM turns WHERE ${THREAD}),
  (SELECT id FROM runs WHERE ${THREAD} AND status = 'pending' ORDER BY place LIMIT 1))`;

const SELECT_VIEW = `SELECT ${timeOf(3)} AS now,
  (SELECT true FROM threads WHERE owner = $1 AND id = $2) AS is_there,
  ${one("run_id, epoch, attempt, released, stop, until", "turns", "true")} AS turn,
  ${all("id", "runs", "place")} AND status = 'pending') AS queue,
  CASE WHEN $4::text IS NOT NULL THEN ${one(RECORD_COLUMNS, "runs", "idempotency_key = $4")} END AS known,
  CASE WHEN $5::text IS NOT NULL THEN ${one(`${RECORD_COLUMNS}, request`, "runs", "id = $5")} END AS run,
  CASE WHEN $6 THEN ${one(`${RECORD_COLUMNS}, request`, "runs", NEXT)} END AS next,
  $7::text IS NOT NULL AND EXISTS (SELECT 1 FROM messages WHERE ${THREAD} AND id = $7) AS has_message,
  CASE WHEN $8 THEN ${all("id", "inbox", "number")}
    AND run_id = (SELECT run_id FROM turns WHERE ${THREAD})) END AS inbox,
  CASE WHEN $9::text IS NOT NULL THEN ${one(`${CALL_COLUMNS}, reply`, "deferred_calls", "call_id = $9")} END AS call,
  CASE WHEN $10 THEN ${all("found", "deferred_calls", "call_id")}) END AS calls,
  CASE WHEN $11::text IS NOT NULL THEN (SELECT count(*) FROM turns WHERE tenant = $11) END AS busy_threads,
  $12::text IS NOT NULL AND $12 = (SELECT id FROM messages WHERE ${THREAD} ORDER BY position DESC LIMIT 1) AS is_last`;

export interface LoadOptions {
  readonly clock: number | null;
  /** The tenant whose threads are counted. */
  readonly tenant: string;
}

/** If `lookups.next` is set, the lease cannot be renewed until the transaction ends. */
export async function loadView(
  tx: Transaction,
  thread: ThreadKey,
  lookups: Lookups,
  { clock, tenant }: LoadOptions,
): Promise<View> {
  const { key, run, next, message, last, inbox, call, calls, busyThreads } = lookups;
  if (next) void tx.rows(`SELECT 1 FROM turns WHERE ${THREAD} FOR UPDATE`, thread);
  const [row] = await tx.rows<ViewRow>(SELECT_VIEW, [
    ...thread,
    clock,
    key === undefined ? null : JSON.stringify(key),
    run ?? null,
    next ?? false,
    message === undefined ? null : JSON.stringify(message),
    inbox ?? false,
    call === undefined ? null : JSON.stringify(call),
    calls ?? false,
    busyThreads ? tenant : null,
    last === undefined ? null : JSON.stringify(last),
  ]);
  if (!row) throw new Error("A statement without a table has one row.");
  const head = row.is_there ? headOf(thread, row) : undefined;
  return {
    now: row.now,
    head,
    until: row.turn?.run_id ? row.turn.until : 0,
    known: row.known ? toRecord(row.known) : undefined,
    run: row.run ? storedOf(row.run) : undefined,
    next: head && runAhead(head) !== undefined && row.next ? storedOf(row.next) : undefined,
    hasMessage: message === undefined ? undefined : row.has_message,
    isLast: last === undefined ? undefined : row.is_last === true,
    inbox: row.inbox?.map((id) => JSON.parse(id) as string),
    call: row.call ? repliedOf(row.call) : undefined,
    calls: row.calls?.map(callOf),
    busyThreads: busyThreads && Number(row.busy_threads),
  };
}

function headOf([owner, id]: ThreadKey, { turn, queue }: ViewRow): ThreadHead {
  const active = turn?.run_id
    ? {
        run: turn.run_id,
        epoch: turn.epoch,
        attempt: turn.attempt,
        ...{ released: turn.released, stop: turn.stop ?? undefined },
      }
    : undefined;
  return { owner: ownerOf(owner), id, active, queue };
}

const storedOf = (row: StoredRow): StoredRun => ({
  record: toRecord(row),
  // The request of an unfinished run is still stored exactly as it was sent.
  request: row.request === null ? undefined : (JSON.parse(row.request) as RunRequest),
});

/** The id of a call is JSON in the table. */
const decoded = <Row extends CallRow>(row: Row): Row => ({
  ...row,
  call_id: JSON.parse(row.call_id) as string,
});

const callOf = (row: CallRow) => callOfRow(decoded(row));
export const repliedOf = (row: RepliedRow) => repliedOfRow(decoded(row));
