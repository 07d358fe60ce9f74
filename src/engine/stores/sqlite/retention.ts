// Deletes expired data: threads that have a time to live, and the events of ended runs.

import { ownTick } from "../../../lib/ticks.ts";
import type { Limits } from "../options.ts";
import { SLICE_ROWS } from "../page.ts";
import type { ThreadKey } from "../row-keys.ts";
import type { Database } from "./database.ts";
import { type Removals, slice } from "./removals.ts";

/** The number of threads or runs to search per tick of the event loop. */
const CHUNK = 100;

/**
 * A SQL condition that is true if the thread's time to live has ended. `a` and `b` are the numbers of the parameters
 * that `Retention.ended()` returns.
 */
export const hasEnded = (a: number, b: number) =>
  `(status <> 'busy' AND used_at <= ?${a} AND (outcome <> 'interrupted' OR used_at <= ?${b}))`;

export interface Retention {
  /**
   * Call this before a thread is read or written. Restarts its time to live, unless it has expired. Returns a promise
   * if parts of the thread remain to be deleted. Wait for it, then visit the thread again.
   */
  visit(owner: string, threadId: string): Promise<void> | undefined;
  /**
   * Returns two times. Threads that were last used at or before the first time have expired. Interrupted threads have
   * expired if they were last used at or before the second time.
   */
  ended(): [number, number];
  /** Deletes expired data now and every `sweepMs` until `stop` is called. */
  start(): void;
  stop(): void;
}

export function createRetention(database: Database, removals: Removals, limits: Limits): Retention {
  const { now, threadTtlMs, interruptedTtlMs, eventRetentionMs, sweepMs, logger } = limits;
  const isOver = database.query(`SELECT 1 FROM threads WHERE owner = ?3 AND id = ?4 AND ${hasEnded(1, 2)}`);
  const selectOver = database.query<{ owner: string; id: string }>(`
    SELECT owner, id FROM threads WHERE ${hasEnded(1, 2)} AND cut IS NULL ORDER BY used_at LIMIT ${CHUNK}`);
  const use = database.query("UPDATE threads SET used_at = ? WHERE owner = ? AND id = ?");
  const ended = database.query<{ owner: string; thread_id: string; id: string }>(`
    SELECT owner, thread_id, id FROM runs WHERE has_events = 1 AND ended_at <= ? ORDER BY ended_at LIMIT ${CHUNK}`);
  const dropEvents = database.query(`
    DELETE FROM events WHERE owner = ?1 AND thread_id = ?2 AND run_id = ?3 AND last_seq IN (
      SELECT last_seq FROM events WHERE owner = ?1 AND thread_id = ?2 AND run_id = ?3 ORDER BY last_seq LIMIT ?4)`);
  const hasNone = database.query(
    "UPDATE runs SET has_events = 0 WHERE owner = ? AND thread_id = ? AND id = ?",
  );
  const isLimited = threadTtlMs < Number.POSITIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let isSweeping = false;
  let isStopped = false;

  const retention: Retention = {
    visit(owner, threadId) {
      const rest = removals.of([owner, threadId]);
      if (rest || !isLimited) return rest;
      database.write((afterCommit) => {
        if (isOver.get(...retention.ended(), owner, threadId))
          removals.removeThread([owner, threadId], slice(), afterCommit);
        else use.run(now(), owner, threadId);
      });
      return removals.of([owner, threadId]);
    },
    ended: () => [now() - threadTtlMs, now() - Math.max(threadTtlMs, interruptedTtlMs)],
    start() {
      removals.start();
      timer = setInterval(sweep, sweepMs).unref();
      sweep();
    },
    stop() {
      clearInterval(timer);
      isStopped = true;
      removals.stop();
    },
  };
  return retention;

  function sweep(): void {
    if (isSweeping) return;
    isSweeping = true;
    sweepAll()
      .catch((err: unknown) => {
        if (!isStopped) logger.warn({ err }, "a sweep of the database failed; the next sweep will retry");
      })
      .finally(() => {
        isSweeping = false;
      });
  }

  async function sweepAll(): Promise<void> {
    for (let isMore = true; isMore && !isStopped; await ownTick()) {
      isMore = [dropSomeThreads(), dropSomeEvents()].some(Boolean);
      // Waits until these are deleted before hiding more threads, which limits the backlog.
      await removals.all();
    }
  }

  /** Returns true if more threads may have expired. */
  function dropSomeThreads(): boolean {
    if (!isLimited) return false;
    const room = slice();
    return database.write((afterCommit) => {
      const over: readonly ThreadKey[] = selectOver
        .all(...retention.ended())
        .map(({ owner, id }) => [owner, id]);
      for (const thread of over) removals.removeThread(thread, room, afterCommit);
      return over.length === CHUNK;
    });
  }

  /** Returns true if more runs may have expired events. */
  function dropSomeEvents(): boolean {
    return database.write(() => {
      let room = SLICE_ROWS;
      const runs = ended.all(now() - eventRetentionMs);
      for (const { owner, thread_id, id } of runs) {
        room -= dropEvents.run(owner, thread_id, id, room);
        if (room === 0) return true;
        hasNone.run(owner, thread_id, id);
      }
      return runs.length === CHUNK;
    });
  }
}
