// Finds due threads: threads with runs that no process holds, and threads with deferred calls that can continue.

import { hasResult, isAwaited } from "../../../agent/core/deferred-calls.ts";
import { latestLeaseEnd } from "../clock-set-back.ts";
import type { Due, Kernel, LookResult } from "../kernel.ts";
import { ownerOf, type ThreadKey, tenantText } from "../row-keys.ts";
import { statesThat } from "../rows.ts";
import type { StoreContext } from "./context.ts";
import { momentOf, timeOf } from "./database.ts";

/** The number of threads to check together. */
const BATCH_SIZE = 32;
const THREAD = "owner = $1 AND thread_id = $2";

interface DueRow {
  readonly owner: string;
  readonly thread_id: string;
  readonly due: number;
}

export function postgresDue(context: StoreContext): Pick<Kernel<ThreadKey>, "eachDue" | "dueCalls"> {
  const { database, limits, retention } = context;
  const { leaseMs } = limits;
  /**
   * Selects free threads with due calls, with tenants taking turns. A result becomes due within the length of a lease;
   * if it is due later, the clock was set back.
   */
  const dueThreads = `
    SELECT owner, thread_id, turn, due FROM (
      SELECT owner, thread_id, min(since) AS due,
        row_number() OVER (PARTITION BY tenant ORDER BY min(since)) AS turn
      FROM (SELECT *, CASE WHEN due_at > ${NOW} THEN 0 ELSE due_at END AS since FROM deferred_calls WHERE due_at <= ${NOW}
        OR due_at > ${NOW} + $6::bigint AND state IN (${statesThat(hasResult)})) AS deferred_calls
      WHERE EXISTS (
        SELECT 1 FROM threads WHERE threads.owner = deferred_calls.owner AND threads.id = deferred_calls.thread_id
          AND NOT ${retention.hasEnded(1, 2, 3)} AND NOT EXISTS (
            SELECT 1 FROM turns WHERE turns.owner = threads.owner AND turns.thread_id = threads.id))
      GROUP BY owner, thread_id, tenant) AS by_thread
    ORDER BY turn, due LIMIT $4`;

  return {
    async eachDue<T>({ limit, except }: Due, look: (thread: ThreadKey) => Promise<LookResult<T>>) {
      const found: T[] = [];
      // First lets the holders renew their leases.
      if (database.outages.graceMs(leaseMs) > 0) return found;
      const until = performance.now() + leaseMs / 3;
      while (found.length < limit && performance.now() < until) {
        const rows = await claimed(Math.min(BATCH_SIZE, limit - found.length), except, found.length > 0);
        if (rows.length === 0) break;
        // If a thread cannot be checked now, it is claimed again later. The runs found so far must be returned.
        const looks = await Promise.allSettled(rows.map((row) => lookAt(row, look)));
        for (const each of looks)
          if (each.status === "fulfilled" && each.value !== undefined) found.push(each.value);
      }
      return found;
    },

    async dueCalls(limit) {
      const rows = await database.transaction(["due calls"], (tx) =>
        tx.writing<{ owner: string; thread_id: string; call_id: string }>(
          `WITH due_threads AS (${dueThreads}),
          held AS (
            UPDATE deferred_calls AS calls SET due_at = ${timeOf(1)} + $5::bigint FROM due_threads
            WHERE calls.owner = due_threads.owner AND calls.thread_id = due_threads.thread_id AND ${IS_DUE}
            RETURNING calls.owner, calls.thread_id, calls.call_id, due_threads.turn, due_threads.due)
          SELECT owner, thread_id, call_id FROM held ORDER BY turn, due, owner, thread_id, call_id`,
          [...retention.times(), limit, leaseMs, latestLeaseEnd(0, leaseMs)],
        ),
      );
      const threads = Map.groupBy(rows, ({ owner, thread_id }) => JSON.stringify([owner, thread_id]));
      return [...threads.values()].flatMap(([first, ...rest]) => {
        if (!first) return [];
        const call_ids = [first, ...rest].map(({ call_id }) => JSON.parse(call_id) as string);
        return { owner: ownerOf(first.owner), thread_id: first.thread_id, call_ids };
      });
    },
  };

  /** Claims threads to check, exclusively for one lease. Throws `unavailable`, unless a thread has already been found. */
  async function claimed(limit: number, except: readonly string[], isAnyFound: boolean): Promise<DueRow[]> {
    try {
      return await database.transaction(["due runs"], async (tx) => {
        const values = [database.clock(), except.map(tenantText), limit, leaseMs, latestLeaseEnd(0, leaseMs)];
        const rows = await tx.writing<DueRow>(CLAIM, values);
        return rows;
      });
    } catch (error) {
      if (isAnyFound) return [];
      throw error;
    }
  }

  async function lookAt<T>(
    { owner, thread_id, due }: DueRow,
    look: (thread: ThreadKey) => Promise<LookResult<T>>,
  ): Promise<T | undefined> {
    const looked = await look([owner, thread_id]);
    if (!("until" in looked)) return looked.found;
    const place = [owner, thread_id, due];
    if (looked.until === undefined)
      await database.query(
        `DELETE FROM turns WHERE ${THREAD} AND due = $3 AND run_id IS NULL AND NOT EXISTS (
        SELECT 1 FROM runs WHERE ${THREAD} AND status = 'pending')`,
        place,
      );
    else
      await database.query(`UPDATE turns SET due = $4 WHERE ${THREAD} AND due = $3`, [
        ...place,
        looked.until,
      ]);
    return undefined;
  }
}

const NOW = momentOf(1);

/**
 * Selects each tenant's longest-waiting thread, starting with the tenant that was served least recently. Threads that
 * are due more than `$5` ms from now come first, and so do tenants whose last turn is in the future. In both cases, the
 * clock was set back.
 */
const CLAIM = `
WITH first AS (
  SELECT DISTINCT ON (tenant) tenant, owner, thread_id, due, since, turn
  FROM (SELECT *, CASE WHEN due > ${NOW} + $5::bigint THEN 0 ELSE due END AS since FROM turns) AS scheduled
  WHERE since <= ${NOW} AND tenant <> ALL ($2) ORDER BY tenant, since, turn),
chosen AS (
  SELECT first.tenant, owner, thread_id, due, row_number() OVER (
    ORDER BY greatest(since, coalesce(served.at, 0)), greatest(first.turn, coalesce(served.turn, 0))) AS place
  FROM first LEFT JOIN served ON served.tenant = first.tenant AND served.at <= ${NOW} ORDER BY place LIMIT $3),
counted AS (
  INSERT INTO served SELECT tenant, ${timeOf(1)}, nextval('turn_numbers')
  FROM (SELECT tenant FROM chosen ORDER BY place) AS ordered
  ON CONFLICT (tenant) DO UPDATE SET at = excluded.at, turn = excluded.turn),
taken AS (
  UPDATE turns SET due = ${timeOf(1)} + $4::bigint FROM chosen
  WHERE turns.owner = chosen.owner AND turns.thread_id = chosen.thread_id AND turns.due = chosen.due
  RETURNING turns.owner, turns.thread_id, turns.due, chosen.place)
SELECT owner, thread_id, due FROM taken ORDER BY place`;

/** Needs the time as a parameter. */
const IS_DUE = `(calls.state IN (${statesThat(hasResult)})
  OR calls.state IN (${statesThat(isAwaited)}) AND calls.expires_at <= ${timeOf(1)})`;
