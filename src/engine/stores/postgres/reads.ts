// Reads threads, runs and deferred calls from the tables.

import type { UserMessage } from "../../../agent/core/message.ts";
import type { QueueStats, StopMode } from "../../../agent/core/stores.ts";
import { latestLeaseEnd } from "../clock-set-back.ts";
import { leaseLost, noSuchMessage } from "../errors.ts";
import type { Kernel } from "../kernel.ts";
import { decodePosition, encodePosition, fitting, pageOf } from "../page.ts";
import { ownerText, rowKey, type ThreadKey } from "../row-keys.ts";
import { ASKS_ITSELF, type ThreadRow } from "../rows.ts";
import { POSTGRES } from "../sql/dialect.ts";
import { sqlReads, threadColumns, threadOf } from "../sql/reads.ts";
import type { StoreContext } from "./context.ts";
import { momentOf, timeOf } from "./database.ts";

const THREAD = "owner = $1 AND thread_id = $2";

/** The maximum number of messages in a page. */
const MAX_ROWS = 1000;
/** A position before all others, because no date is later. */
const NEWEST = { updatedAt: 8.64e15, id: "" };

export function postgresReads({
  database,
  limits,
  retention,
  calls,
}: StoreContext): Pick<Kernel<ThreadKey>, "runs" | "threads" | "deferredCalls"> {
  const { leaseMs } = limits;
  const shared = sqlReads(POSTGRES, (thread) => ({
    async read({ sql, values }) {
      await retention.visit(thread);
      return database.query(sql, values);
    },
  }));

  return {
    runs: {
      ...shared.runs,

      async waiting() {
        const [found] = await database.query<QueueStats>(
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
      ...shared.threads,

      async interrupted() {
        const [found] = await database.query<{ count: number }>(
          `SELECT count(*)::integer AS count FROM threads WHERE outcome = 'interrupted' AND ${ASKS_ITSELF}
          AND NOT ${retention.hasEnded(1, 2, 3)} AND NOT EXISTS (
            SELECT 1 FROM turns WHERE turns.owner = threads.owner AND turns.thread_id = threads.id)`,
          retention.times(),
        );
        return found?.count ?? 0;
      },

      async list(owner, { limit, cursor, agent, status, q, parent, children }) {
        const { updatedAt, id } = cursor === undefined ? NEWEST : decodePosition(cursor);
        const isAny = children && parent === undefined;
        const values = [ownerText(owner), updatedAt, id, agent ?? null, status ?? null, POSTGRES.folded(q)];
        const rows = await database.query<ThreadRow>(
          `SELECT ${threadColumns(POSTGRES)} FROM threads
          WHERE owner = $1 AND (updated_at, id) < ($2, $3) AND ($4::text IS NULL OR agent = $4)
            AND ($5::text IS NULL OR ${POSTGRES.status} = $5) AND ($6::text IS NULL OR strpos(title_folded, $6) > 0)
            AND NOT ${retention.hasEnded(8, 9, 10)} ${isAny ? "" : "AND parent_thread IS NOT DISTINCT FROM $11"}
          ORDER BY updated_at DESC, id DESC LIMIT $7`,
          [...values, limit + 1, ...retention.times(), ...(isAny ? [] : [parent ?? null])],
        );
        const page = pageOf(rows, limit, (row) => encodePosition({ updatedAt: row.updated_at, id: row.id }));
        return { ...page, items: page.items.map((row) => threadOf(POSTGRES, row)) };
      },

      async messagePage(owner, id, { after, limit = MAX_ROWS, bytes }) {
        const thread = await visited(ownerText(owner), id);
        const most = Math.min(limit, MAX_ROWS);
        // PostgreSQL knows the sizes without reading long texts.
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
    },

    deferredCalls: shared.deferredCalls,
  };

  async function visited(owner: string, id: string): Promise<ThreadKey> {
    await retention.visit([owner, id]);
    return [owner, id];
  }
}
