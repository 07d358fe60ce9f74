// The one place where a run's events are written to the file, together with what they mean.

import { changeOf, type Draft, hasEnd, stamp, withLeftovers } from "../endings.ts";
import type { Limits } from "../options.ts";
import type { Changes } from "./changes.ts";
import type { Database, Then } from "./database.ts";
import { type RowKey, rowKey, type ThreadKey } from "./keys.ts";
import type { LiveRun, LiveRuns } from "./live.ts";
import type { Queue } from "./queue.ts";
import { rowsOf } from "./rows.ts";

/** Old rows are deleted each time that so many entries were added. */
const DROP_EVERY = 1024;

/**
 * Writes events and what they mean, as a part of the transaction that `then` belongs to; at most once for a run
 * in each. Readers get the events when it is committed.
 */
export type Recorder = (run: LiveRun, epoch: number, drafts: readonly Draft[], then: Then) => void;

export function createRecorder(
  database: Database,
  { live, queue, changes, limits }: { live: LiveRuns; queue: Queue; changes: Changes; limits: Limits },
): Recorder {
  const insertRow = database.query(
    "INSERT INTO events (owner, thread_id, run_id, last_seq, epoch, event, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const dropRows = database.query(
    "DELETE FROM events WHERE owner = ? AND thread_id = ? AND run_id = ? AND last_seq <= ?",
  );

  return (run, epoch, given, then) => {
    const key = rowKey(run.key);
    const ends = hasEnd(given);
    const drafts = ends ? withLeftovers(given, changes.inbox(key), stamp(run.key, limits.now())) : given;
    const before = run.log.last;
    const entries = drafts.map(({ event, json }, index) => ({
      ...{ epoch, seq: before + index + 1, event: event.event, json },
    }));

    for (const row of rowsOf(entries)) insertRow.run(...key, row.last_seq, row.epoch, row.event, row.body);
    dropOld(key, before, before + entries.length);
    applyAll(key, before, drafts);
    if (ends) moveOn([key[0], key[1]], then);
    then(() => {
      for (const entry of entries) run.log.push(entry);
      if (ends) live.end(run);
      else run.log.ring();
    });
  };

  /** A run of the thread has ended. */
  function moveOn(thread: ThreadKey, then: Then): void {
    const left = changes.busyWith(...thread);
    if (left === "waiting")
      then(() => {
        queue.putBack(thread);
        queue.call({ call: "waiting" });
      });
    if (left === undefined) then(() => queue.drop(thread));
  }

  function dropOld(key: RowKey, before: number, last: number): void {
    const surplus = last - limits.eventsPerRun;
    const isDue = Math.floor(last / DROP_EVERY) > Math.floor(before / DROP_EVERY);
    if (surplus > 0 && isDue) dropRows.run(...key, surplus);
  }

  function applyAll(key: RowKey, before: number, drafts: readonly Draft[]): void {
    const found = drafts.map(changeOf);
    for (const [index, change] of found.entries()) if (change) changes.apply(key, change, before + index + 1);
    if (found.some((change) => change !== undefined)) changes.touchThread(key[0], key[1]);
  }
}
