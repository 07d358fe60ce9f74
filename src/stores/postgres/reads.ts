// Threads, runs and deferred calls as the tables have them.

import type { Message, UserMessage } from "../../core/message.ts";
import type { RunRecord } from "../../core/records.ts";
import type { StopMode, Waiting } from "../../core/stores.ts";
import { latestLeaseEnd } from "../clock-set-back.ts";
import { leaseLost, noSuchMessage } from "../errors.ts";
import type { Kernel } from "../kernel.ts";
import { badCursor, decodePosition, encodePosition, fitting, pageOf } from "../page.ts";
import { ownerText, rowKey, type ThreadKey } from "../row-keys.ts";
import { ASKS_ITSELF, CALL_COLUMNS, type RepliedRow, type ThreadRow, toRecord, toThread } from "../rows.ts";
import type { StoreContext } from "./context.ts";
import { momentOf, timeOf } from "./database.ts";
import { type PostgresRun, RUN_COLUMNS, repliedOf } from "./views.ts";
import { folded } from "./writes.ts";

type MeasuredRow = ThreadRow & { readonly bytes: number };

/** Busy while a run is active or waits, else what the last one left behind. */
const STATUS = `CASE WHEN EXISTS (
  SELECT 1 FROM turns WHERE turns.owner = threads.owner AND turns.thread_id = threads.id) THEN 'busy' ELSE outcome END`;
const THREAD_COLUMNS = `id, agent, title, metadata, parent, forked_from, ${STATUS} AS status, message_count, bytes, created_at, updated_at`;
const THREAD = "owner = $1 AND thread_id = $2";
const SELECT_RUN = `SELECT ${RUN_COLUMNS} FROM runs WHERE ${THREAD}`;

/** Of a page of messages. */
const MAX_ROWS = 1000;
/** Before every position there is: no date is later. */
const NEWEST = { updatedAt: 8.64e15, id: "" };

export function postgresReads({
  database,
  limits,
  lifetime,
  calls,
}: StoreContext): Pick<Kernel<ThreadKey>, "runs" | "threads" | "deferredCalls"> {
  const { leaseMs } = limits;

  return {
    runs: {
      async get(owner, threadId, runId) {
        return runWhere([ownerText(owner), threadId], "id = $3", runId);
      },

      async known(owner, threadId, key) {
        return runWhere([ownerText(owner), threadId], "idempotency_key = $3", JSON.stringify(key));
      },

      async list(owner, threadId, { limit, cursor }) {
        const thread = await visited(ownerText(owner), threadId);
        const end = cursor === undefined ? Number.MAX_SAFE_INTEGER : await numberOf(thread, cursor);
        if (end === undefined) throw badCursor(cursor ?? "");
        const rows = await database.query<PostgresRun>(
          `${SELECT_RUN} AND number < $3 ORDER BY number DESC LIMIT $4`,
          [...thread, end, limit + 1],
        );
        const page = pageOf(rows, limit, (row) => row.id);
        return { ...page, items: page.items.map(toRecord) };
      },

      async active(owner, threadId) {
        return runWhere([ownerText(owner), threadId], "status = 'running'");
      },

      async begun(owner, threadId, after) {
        const thread = [ownerText(owner), threadId] as const;
        if (after === undefined) return runWhere(thread, "begun IS NOT NULL ORDER BY begun DESC LIMIT 1");
        if (after === "") return runWhere(thread, "begun > 0 ORDER BY begun LIMIT 1");
        const next = `begun > (SELECT begun FROM runs WHERE ${THREAD} AND id = $3) ORDER BY begun LIMIT 1`;
        return runWhere(thread, next, after);
      },

      async place(owner, threadId, runId) {
        const thread = await visited(ownerText(owner), threadId);
        const [row] = await database.query<{ begun: number | null }>(
          `SELECT begun FROM runs WHERE ${THREAD} AND id = $3`,
          [...thread, runId],
        );
        return row?.begun ?? undefined;
      },

      async waiting() {
        const [found] = await database.query<Waiting>(
          `SELECT count(*)::integer AS threads, greatest(max(${momentOf(1)} - due), 0)::double precision AS "oldestMs"
          FROM turns WHERE due <= ${momentOf(1)} OR due > ${momentOf(1)} + $2::bigint`,
          [database.clock(), latestLeaseEnd(0, leaseMs)],
        );
        return found ?? { threads: 0, oldestMs: 0 };
      },

      subscribe: (listener) => calls.subscribe(listener),

      async inbox(lease) {
        const rows = await database.queryUntilLeaseEnds<{ body: string | null }>(
          `SELECT body FROM turns LEFT JOIN inbox USING (owner, thread_id, run_id)
          WHERE ${THREAD} AND run_id = $3 AND epoch = $4 AND until <> 0 ORDER BY number`,
          [...rowKey(lease), lease.epoch],
        );
        if (rows.length === 0) throw leaseLost(lease);
        return rows.flatMap(({ body }) => (body === null ? [] : (JSON.parse(body) as UserMessage)));
      },

      async renew(lease) {
        const [held] = await database.query<{ stop: StopMode | null }>(
          `UPDATE turns SET until = ${timeOf(5)} + $6::bigint, due = ${timeOf(5)} + $6::bigint
          WHERE ${THREAD} AND run_id = $3 AND epoch = $4 AND until <> 0
          RETURNING stop, set_config('synchronous_commit', 'off', true)`,
          [...rowKey(lease), lease.epoch, database.clock(), leaseMs],
        );
        if (!held) throw leaseLost(lease);
        return held.stop ? { stop: held.stop } : {};
      },
    },

    threads: {
      async interrupted() {
        const [found] = await database.query<{ count: number }>(
          `SELECT count(*)::integer AS count FROM threads WHERE outcome = 'interrupted' AND ${ASKS_ITSELF}
          AND NOT ${lifetime.hasEnded(1, 2, 3)} AND NOT EXISTS (
            SELECT 1 FROM turns WHERE turns.owner = threads.owner AND turns.thread_id = threads.id)`,
          lifetime.times(),
        );
        return found?.count ?? 0;
      },

      async get(owner, id) {
        const row = await threadRow(owner, id);
        return row && threadOf(row);
      },

      async list(owner, { limit, cursor, agent, status, q, parent, children }) {
        const { updatedAt, id } = cursor === undefined ? NEWEST : decodePosition(cursor);
        const isAny = children && parent === undefined;
        const values = [ownerText(owner), updatedAt, id, agent ?? null, status ?? null, folded(q)];
        const rows = await database.query<ThreadRow>(
          `SELECT ${THREAD_COLUMNS} FROM threads
          WHERE owner = $1 AND (updated_at, id) < ($2, $3) AND ($4::text IS NULL OR agent = $4)
            AND ($5::text IS NULL OR ${STATUS} = $5) AND ($6::text IS NULL OR strpos(title_folded, $6) > 0)
            AND NOT ${lifetime.hasEnded(8, 9, 10)} ${isAny ? "" : "AND parent_thread IS NOT DISTINCT FROM $11"}
          ORDER BY updated_at DESC, id DESC LIMIT $7`,
          [...values, limit + 1, ...lifetime.times(), ...(isAny ? [] : [parent ?? null])],
        );
        const page = pageOf(rows, limit, (row) => encodePosition({ updatedAt: row.updated_at, id: row.id }));
        return { ...page, items: page.items.map(threadOf) };
      },

      async bytes(owner, id) {
        return (await threadRow(owner, id))?.bytes ?? 0;
      },

      async measured(owner, id) {
        const row = await threadRow(owner, id);
        return row && { thread: threadOf(row), bytes: row.bytes };
      },

      async message(owner, id, messageId) {
        const thread = await visited(ownerText(owner), id);
        const select = `SELECT body FROM messages WHERE ${THREAD}`;
        const [row] = await (messageId === undefined
          ? database.query<{ body: string }>(`${select} ORDER BY position DESC LIMIT 1`, thread)
          : database.query<{ body: string }>(`${select} AND id = $3`, [
              ...thread,
              JSON.stringify(messageId),
            ]));
        // Only messages are put into this column.
        return row && (JSON.parse(row.body) as Message);
      },

      async messagePage(owner, id, { after, limit = MAX_ROWS, bytes }) {
        const thread = await visited(ownerText(owner), id);
        const most = Math.min(limit, MAX_ROWS);
        // Sizes are known without reading long texts.
        const sizes = await database.query<{ position: number | null; bytes: number }>(
          `SELECT position, octet_length(body) AS bytes
          FROM (SELECT coalesce((SELECT position FROM messages WHERE ${THREAD} AND id = $3),
            CASE WHEN $3::text IS NULL THEN 0 END) AS place) AS start
          LEFT JOIN LATERAL (SELECT position, body FROM messages WHERE ${THREAD} AND position > place ORDER BY position LIMIT $4)
            AS found ON true WHERE place IS NOT NULL ORDER BY position`,
          [...thread, after === undefined ? null : JSON.stringify(after), most + 1],
        );
        if (after !== undefined && sizes.length === 0) throw noSuchMessage(after);
        const there = sizes.flatMap(({ position, ...size }) =>
          position === null ? [] : { position, ...size },
        );
        const taken = fitting(there.slice(0, most), bytes);
        const [first, last] = [there[0], there[taken - 1]];
        if (!first || !last) return { texts: [], isLast: true };
        const rows = await database.query<{ body: string }>(
          `SELECT body FROM messages WHERE ${THREAD} AND position BETWEEN $3 AND $4 ORDER BY position`,
          [...thread, first.position, last.position],
        );
        return { texts: rows.map(({ body }) => body), isLast: taken === there.length };
      },

      async state(owner, id) {
        const thread = await visited(ownerText(owner), id);
        const rows = await database.query<{ key: string; value: string }>(
          `SELECT key, value FROM state WHERE ${THREAD}`,
          thread,
        );
        return Object.fromEntries(rows.map(({ key, value }) => [JSON.parse(key), JSON.parse(value)]));
      },
    },

    deferredCalls: {
      async get({ owner, thread_id, call_id }) {
        const thread = await visited(ownerText(owner), thread_id);
        const [row] = await database.query<RepliedRow>(
          `SELECT ${CALL_COLUMNS}, reply FROM deferred_calls WHERE ${THREAD} AND call_id = $3`,
          [...thread, JSON.stringify(call_id)],
        );
        return row && repliedOf(row);
      },
    },
  };

  async function visited(owner: string, id: string): Promise<ThreadKey> {
    await lifetime.visit([owner, id]);
    return [owner, id];
  }

  async function runWhere(
    [owner, id]: ThreadKey,
    which: string,
    ...values: string[]
  ): Promise<RunRecord | undefined> {
    const thread = await visited(owner, id);
    const [row] = await database.query<PostgresRun>(`${SELECT_RUN} AND ${which}`, [...thread, ...values]);
    return row && toRecord(row);
  }

  async function numberOf(thread: ThreadKey, run: string): Promise<number | undefined> {
    const [row] = await database.query<{ number: number }>(
      `SELECT number FROM runs WHERE ${THREAD} AND id = $3`,
      [...thread, run],
    );
    return row?.number;
  }

  async function threadRow(
    owner: Parameters<typeof ownerText>[0],
    id: string,
  ): Promise<MeasuredRow | undefined> {
    const thread = await visited(ownerText(owner), id);
    const [row] = await database.query<MeasuredRow>(
      `SELECT ${THREAD_COLUMNS} FROM threads WHERE owner = $1 AND id = $2`,
      thread,
    );
    return row;
  }
}

/** The title is JSON in the table. */
const threadOf = (row: ThreadRow) =>
  toThread({ ...row, title: row.title === null ? null : (JSON.parse(row.title) as string) });
