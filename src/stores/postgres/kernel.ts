// Threads, runs and deferred calls in PostgreSQL. What changes a thread is a transaction that has its lock; what the epoch of
// a lease alone fences is a statement.

import { hasResult, isAwaited } from "../../core/deferred-calls.ts";
import type { Lease } from "../../core/stores.ts";
import { latestLeaseEnd } from "../clock-set-back.ts";
import { threadExists } from "../errors.ts";
import type { Due, Kernel, Looked } from "../kernel.ts";
import { TELLS_OF_CRASHES } from "../outcomes.ts";
import { ownerOf, ownerText, rowKey, type ThreadKey, tenantText } from "../row-keys.ts";
import { type EventRow, entriesOf, statesThat } from "../rows.ts";
import { sharedEvents } from "../shared/events.ts";
import { type Decision, headAfter, type View, type Write } from "../thread-head.ts";
import type { StoreContext } from "./context.ts";
import { momentOf, type Transaction, timeOf } from "./database.ts";
import { postgresReads } from "./reads.ts";
import { loadView } from "./views.ts";
import { carryOut } from "./writes.ts";

/** Threads that are looked at together. */
const BATCH_SIZE = 32;
const THREAD = "owner = $1 AND thread_id = $2";

interface DueRow {
  readonly owner: string;
  readonly thread_id: string;
  readonly due: number;
}

export function postgresKernel(context: StoreContext): Kernel<ThreadKey> {
  const { database, limits, lifetime, calls, writer, runFeed, feeds } = context;
  const { leaseMs } = limits;
  /** Free threads with calls that are due, tenants in turn. A result is due within a lease, or the clock was set back. */
  const dueThreads = `
    SELECT owner, thread_id, turn, due FROM (
      SELECT owner, thread_id, min(since) AS due,
        row_number() OVER (PARTITION BY tenant ORDER BY min(since)) AS turn
      FROM (SELECT *, CASE WHEN due_at > ${NOW} THEN 0 ELSE due_at END AS since FROM deferred_calls WHERE due_at <= ${NOW}
        OR due_at > ${NOW} + $6::bigint AND state IN (${statesThat(hasResult)})) AS deferred_calls
      WHERE EXISTS (
        SELECT 1 FROM threads WHERE threads.owner = deferred_calls.owner AND threads.id = deferred_calls.thread_id
          AND NOT ${lifetime.hasEnded(1, 2, 3)} AND NOT EXISTS (
            SELECT 1 FROM turns WHERE turns.owner = threads.owner AND turns.thread_id = threads.id))
      GROUP BY owner, thread_id, tenant) AS by_thread
    ORDER BY turn, due LIMIT $4`;

  return {
    limits,
    ref: (owner, id) => [ownerText(owner), id],

    async change(thread, lookups, decide) {
      const { after, busyThreads } = lookups;
      // What waits to be written comes first.
      if (after) await writer.finish(after);
      await lifetime.visit(thread);
      const tenant = tenantText(ownerOf(thread[0]).tenant);
      const room = `room ${tenant}`;
      const change = () =>
        inTransaction(thread, after, async (tx) => {
          // Threads of a tenant are counted by one at a time.
          if (busyThreads) void tx.rows("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [room]);
          const clock = database.clock();
          const loaded = await loadView(tx, thread, lookups, { clock, tenant });
          const view = {
            ...loaded,
            until: loaded.until === 0 ? 0 : loaded.until + database.outages.graceMs(leaseMs),
          };
          const decision = decide(view);
          const held = await write(tx, thread, view, decision);
          return { decision, held, now: view.now };
        });
      const decided = await (busyThreads ? database.oneByOne(room, change) : change());
      const { decision, held, now } = decided;
      if (held) writer.begin(held.lease, held.seq);
      const cancelled = decision.writes.find((each) => each.write === "cancel_run");
      if (cancelled)
        feeds.hear(firstLease(thread, cancelled.run), cancelled.pending, cancelled.pending.length);
      if (decision.tell) calls.publish(decision.tell);
      return decision.result(now);
    },

    async stage(thread, token, messages) {
      await database.transaction(["thread", ...thread], async (tx) => {
        // Others may be staging for the same thread, or have died: whose comes first is decided when it is created.
        const [other] = await tx.rows("SELECT 1 FROM threads WHERE owner = $1 AND id = $2", thread);
        if (other) throw threadExists(thread[1]);
        tx.write(
          `INSERT INTO staged (owner, thread_id, token, position, id, body, at)
          SELECT $1, $2, $3, number + (SELECT coalesce(max(position), 0) FROM staged WHERE ${THREAD} AND token = $3),
            id, body, ${timeOf(6)}
          FROM unnest($4::text[], $5::text[]) WITH ORDINALITY AS new (id, body, number) ON CONFLICT DO NOTHING`,
          [
            ...[...thread, token, messages.map(({ id }) => JSON.stringify(id))],
            ...[messages.map(({ text }) => text), database.clock()],
          ],
        );
      });
    },

    async unstage(thread, token) {
      await database.query(`DELETE FROM staged WHERE ${THREAD} AND token = $3`, [...thread, token]);
    },

    async eachDue<T>({ limit, except }: Due, look: (thread: ThreadKey) => Promise<Looked<T>>) {
      const found: T[] = [];
      // Holders renew their leases first.
      if (database.outages.graceMs(leaseMs) > 0) return found;
      const until = performance.now() + leaseMs / 3;
      while (found.length < limit && performance.now() < until) {
        const rows = await claimed(Math.min(BATCH_SIZE, limit - found.length), except, found.length > 0);
        if (rows.length === 0) break;
        // What cannot be looked at now is claimed again later; what was found already must be returned.
        const looks = await Promise.allSettled(rows.map((row) => lookAt(row, look)));
        for (const each of looks)
          if (each.status === "fulfilled" && each.value !== undefined) found.push(each.value);
      }
      return found;
    },

    async logOf(lease) {
      return database
        .query<EventRow>(SELECT_LAST_EVENTS, rowKey(lease))
        .then((rows) => rows.flatMap(entriesOf));
    },

    async findCall(tokenHash) {
      const [found] = await database.query<{ owner: string; thread_id: string; call_id: string }>(
        "SELECT owner, thread_id, call_id FROM deferred_calls WHERE token_hash = $1",
        [tokenHash],
      );
      return (
        found && {
          thread: [found.owner, found.thread_id] as const,
          call_id: JSON.parse(found.call_id) as string,
        }
      );
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
          [...lifetime.times(), limit, leaseMs, latestLeaseEnd(0, leaseMs)],
        ),
      );
      const threads = Map.groupBy(rows, ({ owner, thread_id }) => JSON.stringify([owner, thread_id]));
      return [...threads.values()].flatMap(([first, ...rest]) => {
        if (!first) return [];
        const call_ids = [first, ...rest].map(({ call_id }) => JSON.parse(call_id) as string);
        return { owner: ownerOf(first.owner), thread_id: first.thread_id, call_ids };
      });
    },

    events: sharedEvents(context),
    ...postgresReads(context),
  };

  /** Returns the lease that is given, and how far its log is. */
  async function write<R>(
    tx: Transaction,
    thread: ThreadKey,
    view: View,
    { writes }: Decision<R>,
  ): Promise<{ readonly lease: Lease; readonly seq: number } | undefined> {
    const owner = ownerOf(thread[0]);
    let { head } = view;
    for (const each of writes) {
      carryOut({ tx, thread, head, at: view.now, leaseMs }, each);
      head = headAfter(head, each, owner);
    }
    tellOfEnd(tx, thread, writes);
    const hold = writes.find((each) => each.write === "hold_run");
    if (!hold) return undefined;
    const lease = { owner, thread_id: thread[1], run_id: hold.run, epoch: hold.epoch };
    if (hold.begins) return { lease, seq: 0 };
    const [turn] = await tx.rows<{ last_seq: number }>(`SELECT last_seq FROM turns WHERE ${THREAD}`, thread);
    return { lease, seq: turn?.last_seq ?? 0 };
  }

  /** The holder of `after` has no more to write. */
  async function inTransaction<T>(
    thread: ThreadKey,
    after: Lease | undefined,
    work: (tx: Transaction) => Promise<T>,
  ): Promise<T> {
    try {
      return await database.transaction(["thread", ...thread], work);
    } finally {
      if (after) writer.forget(after);
    }
  }

  /** Of a run that is cancelled while it waits: it may have followers. */
  function tellOfEnd(tx: Transaction, thread: ThreadKey, writes: readonly Write[]): void {
    const cancelled = writes.find((each) => each.write === "cancel_run");
    if (!cancelled) return;
    const run = firstLease(thread, cancelled.run);
    const news = { run, last: cancelled.pending.length, epoch: run.epoch, ends: true };
    tx.write("SELECT pg_notify($1, told) FROM unnest($2::text[]) AS told", [
      runFeed.channel,
      runFeed.payloads([news]),
    ]);
  }

  /** Threads that are to be looked at, for this caller alone for a lease. Throws `unavailable`, unless something was found. */
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
    look: (thread: ThreadKey) => Promise<Looked<T>>,
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

/** Under which a run that never began has ended. */
const firstLease = ([owner, thread_id]: ThreadKey, run_id: string): Lease => ({
  owner: ownerOf(owner),
  thread_id,
  run_id,
  epoch: 1,
});

const NOW = momentOf(1);

/**
 * The thread of each tenant that waits longest; the tenant first that waits longest since it was served. What is due later than
 * anything can be, `$5` ms from now, or was served later than now, comes first: the clock was set back.
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

/** Takes the time. */
const IS_DUE = `(calls.state IN (${statesThat(hasResult)})
  OR calls.state IN (${statesThat(isAwaited)}) AND calls.expires_at <= ${timeOf(1)})`;

const SELECT_LAST_EVENTS = `
  SELECT last_seq, epoch, event, body FROM events WHERE owner = $1 AND thread_id = $2 AND run_id = $3
    AND event IN (${TELLS_OF_CRASHES.map((name) => `'${name}'`).join(", ")}) ORDER BY last_seq`;
