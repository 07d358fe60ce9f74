// What goes when its time is up: threads, if they have a time to live, and the events of runs that have ended.

import type { Limits } from "../options.ts";
import type { Database } from "./database.ts";

/** Deleted in one go. In between, others get their turn. */
const CHUNK = 100;

export interface Lifetime {
  /** A thread is about to be read or written: its time begins anew, unless it is up already. */
  visit(owner: string, threadId: string): void;
  /** Forgets the threads whose time is up. */
  dropThreads(): void;
  /** Looks for what is due, now and every `sweepMs`, until `stop`. */
  start(): void;
  stop(): void;
}

export function createLifetime(database: Database, limits: Limits): Lifetime {
  const { now, threadTtlMs, interruptedTtlMs, eventRetentionMs, sweepMs } = limits;
  const DUE = "status <> 'busy' AND used_at <= ?1 AND (outcome <> 'interrupted' OR used_at <= ?2)";
  const dropThread = database.query(`DELETE FROM threads WHERE owner = ?3 AND id = ?4 AND ${DUE}`);
  const dropThreads = database.query(`DELETE FROM threads WHERE ${DUE}`);
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

  const due = () => [now() - threadTtlMs, now() - Math.max(threadTtlMs, interruptedTtlMs)];

  const lifetime: Lifetime = {
    visit(owner, threadId) {
      if (!isLimited) return;
      database.write("fast", () => {
        dropThread.run(...due(), owner, threadId);
        use.run(now(), owner, threadId);
      });
    },
    dropThreads() {
      if (isLimited) database.write("fast", () => dropThreads.run(...due()));
    },
    start() {
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
    lifetime.dropThreads();
    clearImmediate(rest);
    if (dropSomeEvents() === CHUNK) rest = setImmediate(sweep);
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
