// Taking runs: for the first time, in their turn, or after whoever executed them is gone. Every function is a
// part of the transaction that `then` belongs to.

import { BRACKETS } from "../../core/grammar.ts";
import type { RunRequest } from "../../core/records.ts";
import type { Claim, RunKey } from "../../core/stores.ts";
import { crashedTooOften, draftOf, stamp, TELLS_OF_CALLS } from "../endings.ts";
import type { Then } from "./database.ts";
import type { Engine } from "./engine.ts";
import { ownerOf, rowKey } from "./keys.ts";
import { type EventRow, entriesOf } from "./rows.ts";
import { RUN_COLUMNS, type RunRow, toRecord } from "./run-rows.ts";

export interface Claims {
  /** The next waiting run of a thread, if the thread is free. */
  next(owner: string, threadId: string, then: Then): Claim | undefined;
  /** The run of a thread that nobody executes. One that died too often is ended, and the next one taken. */
  abandoned(owner: string, threadId: string, then: Then): Claim | undefined;
  request(row: RunRow): RunRequest;
}

export function createClaims({
  database,
  live,
  queue,
  record,
  limits: { now, maxAttempts },
}: Engine): Claims {
  const firstWaiting = database.query<RunRow>(`
    SELECT ${RUN_COLUMNS} FROM runs
    WHERE owner = ?1 AND thread_id = ?2 AND status = 'pending' AND NOT EXISTS (
      SELECT 1 FROM runs WHERE owner = ?1 AND thread_id = ?2 AND status = 'running')
    ORDER BY place LIMIT 1`);
  const running = database.query<RunRow>(
    `SELECT ${RUN_COLUMNS} FROM runs WHERE owner = ? AND thread_id = ? AND status = 'running'`,
  );
  const take = database.query(`
    UPDATE runs SET status = 'running', attempt = ?1, place = NULL, begun = coalesce(begun, 1 + (
      SELECT coalesce(max(begun), 0) FROM runs WHERE owner = ?2 AND thread_id = ?3 AND begun IS NOT NULL))
    WHERE owner = ?2 AND thread_id = ?3 AND id = ?4`);
  const selectRequest = database.query<{ request: string }>(
    "SELECT request FROM runs WHERE owner = ? AND thread_id = ? AND id = ?",
  );
  const selectBrackets = database.query<EventRow>(`
    SELECT last_seq, epoch, event, body FROM events
    WHERE owner = ? AND thread_id = ? AND run_id = ?
      AND event IN (${[...BRACKETS, ...TELLS_OF_CALLS].map((name) => `'${name}'`).join(", ")}) ORDER BY last_seq`);

  return {
    next,
    abandoned(owner, threadId, then) {
      const row = running.get(owner, threadId);
      if (!row) return next(owner, threadId, then);
      const died = row.attempt - row.released;
      if (died < maxAttempts) return claim(row, row.attempt + 1, then);
      giveUp(row, died, then);
      return next(owner, threadId, then);
    },
    request,
  };

  function next(owner: string, threadId: string, then: Then): Claim | undefined {
    const row = firstWaiting.get(owner, threadId);
    return row && claim(row, row.attempt, then);
  }

  function claim(row: RunRow, attempt: number, then: Then): Claim {
    const key = keyOf(row);
    take.run(attempt, ...rowKey(key));
    then(() => {
      live.hold(key, attempt, row.stop ?? undefined);
      queue.hold([row.owner, row.thread_id]);
    });
    const run = toRecord({ ...row, status: "running", attempt });
    return { lease: { ...key, epoch: attempt }, run, request: request(row) };
  }

  function request(row: RunRow): RunRequest {
    // Every run that has not ended has its request, as it was given.
    return JSON.parse(selectRequest.get(row.owner, row.thread_id, row.id)?.request ?? "null") as RunRequest;
  }

  function giveUp(row: RunRow, died: number, then: Then): void {
    const key = keyOf(row);
    const entries = selectBrackets.all(...rowKey(key)).flatMap(entriesOf);
    const events = crashedTooOften(died, entries, stamp(key, now()));
    record(live.open(key), row.attempt, events.map(draftOf), then);
  }
}

export function keyOf({ owner, thread_id, id }: RunRow): RunKey {
  return { owner: ownerOf(owner), thread_id, run_id: id };
}
