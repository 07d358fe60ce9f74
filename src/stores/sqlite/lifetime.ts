// What goes when its time is up: threads, if they have a time to live, and the events of runs that have ended.

import type { Limits } from "../options.ts";
import type { Database } from "./database.ts";

/** Deleted in one go. In between, others get their turn. */
const CHUNK = 100;

/** SQL: a thread's time is up. `a` and `b` are the numbers of the parameters that `Lifetime.ended()` gives. */
export const hasEnded = (a: number, b: number) =>
  `(status <> 'busy' AND used_at <= ?${a} AND (outcome <> 'interrupted' OR used_at <= ?${b}))`;

export interface Lifetime {
  /** A thread is about to be read or written: restarts its time to live, unless it has expired. */
  visit(owner: string, threadId: string): void;
  /** Threads last used at the first time or before have ended; interrupted ones at the second. */
  ended(): [number, number];
  /** Drops copies that were not finished, and looks for what is due, now and every `sweepMs`, until `stop`. */
  start(): void;
  stop(): void;
}

export function createLifetime(database: Database, limits: Limits): Lifetime {
  const { now, threadTtlMs, interruptedTtlMs, eventRetentionMs, sweepMs } = limits;
  const dropThread = database.query(`DELETE FROM threads WHERE owner = ?3 AND id = ?4 AND ${hasEnded(1, 2)}`);
  const dropThreads = database.query(`
    DELETE FROM threads WHERE (owner, id) IN (
      SELECT owner, id FROM threads WHERE ${hasEnded(1, 2)} ORDER BY used_at LIMIT ${CHUNK})`);
  const dropStaged = database.query("DELETE FROM threads WHERE staged IS NOT NULL");
  const use = database.query("UPDATE threads SET used_at = ? WHERE owner = ? AND id = ?");
  const ended = database.query<{ owner: string; thread_id: string; id: string }>(`
    SELECT owner, thread_id, id FROM runs WHERE has_events = 1 AND ended_at <= ? ORDER BY ended_at LIMIT ${CHUNK}`);
  const dropEvents = database.query("DELETE FROM events WHERE owner = ? AND thread_id = ? AND run_id = ?");
  const hasNone = database.query(
    "UPDATE runs SET has_events = 0 WHERE owner = ? AND thread_id = ? AND id = ?",
  );
  const isLimited = threadTtlMs < Number.POSITIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let rest: NodeJS.Immediate | undefined;

  const lifetime: Lifetime = {
    visit(owner, threadId) {
      if (!isLimited) return;
      database.write("fast", () => {
        dropThread.run(...lifetime.ended(), owner, threadId);
        use.run(now(), owner, threadId);
      });
    },
    ended: () => [now() - threadTtlMs, now() - Math.max(threadTtlMs, interruptedTtlMs)],
    start() {
      database.write("fast", () => dropStaged.run());
      timer = setInterval(sweep, sweepMs).unref();
      sweep();
    },
    stop() {
      clearInterval(timer);
      clearImmediate(rest);
    },
  };
  return lifetime;

  function sweep(): void {
    clearImmediate(rest);
    const threads = dropSomeThreads();
    const runs = dropSomeEvents();
    if (threads === CHUNK || runs === CHUNK) rest = setImmediate(sweep);
  }

  function dropSomeThreads(): number {
    return isLimited ? database.write("fast", () => dropThreads.run(...lifetime.ended())) : 0;
  }

  function dropSomeEvents(): number {
    return database.write("fast", () => {
      const runs = ended.all(now() - eventRetentionMs);
      for (const { owner, thread_id, id } of runs) {
        dropEvents.run(owner, thread_id, id);
        hasNone.run(owner, thread_id, id);
      }
      return runs.length;
    });
  }
}
