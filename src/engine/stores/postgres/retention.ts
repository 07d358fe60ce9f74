// Deletes expired data: threads that have a time to live, and the events of ended runs. Only one process does this at a
// time.

import { LRUCache } from "lru-cache";
import { atMost } from "../../../lib/lru.ts";
import type { Limits } from "../options.ts";
import { type ThreadKey, threadText } from "../row-keys.ts";
import { type Database, timeOf } from "./database.ts";

/** Threads are kept longer than their time to live by this fraction, so that not every use has to be written. */
const RESERVE = 0.1;
/** The maximum number of recently used threads to remember. They need no check. */
const LATELY_USED = 10_000;
const LONGEST_MS = 365 * 86_400_000;
/** The number of rows to delete in one transaction. */
const CHUNK = 100;
/** The number of milliseconds within which a copy must add its next slice or end. */
const STAGED_MS = 600_000;
/** The number of milliseconds for which a change with a lost response can be repeated. */
const COMMITS_MS = 600_000;

export interface Retention {
  /** Call this before a thread is read or written. Restarts its time to live, or deletes it if it has expired. */
  visit(thread: ThreadKey): Promise<void>;
  /**
   * A SQL condition that is true if the thread's time to live has ended. `clock`, `idle` and `interrupted` are the
   * parameters that `times` returns.
   */
  hasEnded(clock: number, idle: number, interrupted: number): string;
  times(): [clock: number | null, idle: number | null, interrupted: number | null];
  /** Deletes expired data now and every `sweepMs` until `stop` is called. */
  start(): void;
  stop(): void;
}

export function createRetention(database: Database, limits: Limits): Retention {
  const { threadTtlMs: idleMs, eventRetentionMs, sweepMs, logger } = limits;
  const interruptedMs = Math.max(limits.interruptedTtlMs, idleMs);
  const used = new LRUCache<string, true>({
    ...atMost(LATELY_USED),
    ttl: Math.max(1, Math.floor(Math.min(idleMs, LONGEST_MS) * RESERVE)),
    perf: { now: limits.now },
    ttlResolution: 0,
  });
  let timer: NodeJS.Timeout | undefined;
  let sweeping: Promise<void> | undefined;
  let isStopped = false;

  const retention: Retention = {
    async visit(thread) {
      if (!Number.isFinite(idleMs) || used.has(threadText(thread))) return;
      await database.query(
        `WITH gone AS (DELETE FROM threads WHERE owner = $1 AND id = $2 AND ${retention.hasEnded(3, 4, 5)})
        UPDATE threads SET used_at = ${timeOf(3)}
        WHERE owner = $1 AND id = $2 AND NOT ${retention.hasEnded(3, 4, 5)} AND used_at < ${timeOf(3)} - $6::bigint`,
        [...thread, ...retention.times(), Math.floor(idleMs * RESERVE * RESERVE)],
      );
      used.set(threadText(thread), true);
    },

    hasEnded: (clock, idle, interrupted) =>
      `coalesce((used_at <= ${timeOf(clock)} - $${idle}::bigint
        AND (outcome <> 'interrupted' OR used_at <= ${timeOf(clock)} - $${interrupted}::bigint)
        AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.owner = threads.owner AND turns.thread_id = threads.id)), false)`,

    times: () => [
      database.clock(),
      timeOrNull(idleMs * (1 + RESERVE)),
      timeOrNull(interruptedMs * (1 + RESERVE)),
    ],

    start() {
      timer = setInterval(() => void sweep(), sweepMs).unref();
      void sweep();
    },

    stop() {
      isStopped = true;
      clearInterval(timer);
    },
  };
  return retention;

  function sweep(): Promise<void> {
    sweeping ??= sweepAll()
      .catch((err: unknown) => {
        if (!isStopped) logger.warn({ err }, "a sweep of the database failed; the next sweep will retry");
      })
      .finally(() => {
        sweeping = undefined;
      });
    return sweeping;
  }

  async function sweepAll(): Promise<void> {
    for (const statement of statements()) {
      let dropped = CHUNK;
      while (dropped >= CHUNK && !isStopped) dropped = await sweepSome(statement);
    }
  }

  /** Returns the number of deleted rows. */
  function sweepSome({ sql, values }: Sweep): Promise<number> {
    return database.transaction(["sweeping"], async (tx) => {
      const [row] = await tx.writing<{ n: number }>(sql, values);
      return Number(row?.n ?? 0);
    });
  }

  function statements(): Sweep[] {
    const [clock, idle, interrupted] = retention.times();
    const before = (ms: number) => [clock, ms];
    const all: Sweep[] = [
      {
        sql: `WITH gone AS (DELETE FROM commits WHERE at <= ${timeOf(1)} - $2::bigint RETURNING 1) SELECT 0 AS n`,
        values: before(COMMITS_MS),
      },
      {
        sql: `WITH gone AS (DELETE FROM staged WHERE (owner, thread_id, token) IN (
            SELECT owner, thread_id, token FROM staged GROUP BY 1, 2, 3 HAVING max(at) <= ${timeOf(1)} - $2::bigint)
            RETURNING 1) SELECT 0 AS n`,
        values: before(STAGED_MS),
      },
    ];
    if (idle !== null)
      all.push({
        sql: `WITH gone AS (DELETE FROM threads WHERE ${retention.hasEnded(1, 2, 3)} AND (owner, id) IN (
            SELECT owner, id FROM threads WHERE ${retention.hasEnded(1, 2, 3)} ORDER BY used_at LIMIT ${CHUNK}
            FOR UPDATE SKIP LOCKED) RETURNING 1) SELECT count(*) AS n FROM gone`,
        values: [clock, idle, interrupted],
      });
    if (Number.isFinite(eventRetentionMs))
      all.push({
        sql: `WITH ended AS (
            SELECT owner, thread_id, id FROM runs WHERE has_events AND ended_at <= ${timeOf(1)} - $2::bigint
            ORDER BY ended_at LIMIT ${CHUNK} FOR UPDATE SKIP LOCKED),
          gone AS (DELETE FROM events USING ended WHERE events.owner = ended.owner
            AND events.thread_id = ended.thread_id AND events.run_id = ended.id),
          noted AS (UPDATE runs SET has_events = false FROM ended WHERE runs.owner = ended.owner
            AND runs.thread_id = ended.thread_id AND runs.id = ended.id)
          SELECT count(*) AS n FROM ended`,
        values: before(eventRetentionMs),
      });
    return all;
  }
}

interface Sweep {
  readonly sql: string;
  readonly values: readonly unknown[];
}

const timeOrNull = (ms: number) => (Number.isFinite(ms) ? Math.floor(ms) : null);
