// Taking runs: for the first time, in their turn, or after whoever executed them is gone. Every function is a
// part of the transaction that `then` belongs to.

import { BRACKETS } from "../../core/grammar.ts";
import type { Claim, RunKey, RunRequest } from "../../core/stores.ts";
import { crashedTooOften, draftOf, stamp } from "../endings.ts";
import type { Then } from "./database.ts";
import type { Engine } from "./engine.ts";
import { ownerOf, rowKey } from "./keys.ts";
import { type EventRow, entriesOf } from "./rows.ts";
import { RUN_COLUMNS, type RunRow, toRecord } from "./run-rows.ts";

export interface Claims {
  /** The next waiting run of a thread, if the thread is free. */
  next(owner: string, threadId: string, then: Then): Claim | undefined;
  /** Every run that nobody executes. Those that died too often are ended instead. */
  abandoned(then: Then): Claim[];
  request(row: RunRow): RunRequest;
}

export function createClaims({ database, live, record, limits: { now, maxAttempts } }: Engine): Claims {
  const FIRST = `
    SELECT ${RUN_COLUMNS} FROM runs AS first
    WHERE status = 'pending'
      AND place = (SELECT min(place) FROM runs
        WHERE owner = first.owner AND thread_id = first.thread_id AND status = 'pending')
      AND NOT EXISTS (SELECT 1 FROM runs
        WHERE owner = first.owner AND thread_id = first.thread_id AND status = 'running')`;
  const firstOfAll = database.query<RunRow>(FIRST);
  const firstOfOne = database.query<RunRow>(`${FIRST} AND owner = ? AND thread_id = ?`);
  const running = database.query<RunRow>(`SELECT ${RUN_COLUMNS} FROM runs WHERE status = 'running'`);
  const take = database.query(`
    UPDATE runs SET status = 'running', attempt = ?, place = NULL
    WHERE owner = ? AND thread_id = ? AND id = ?`);
  const selectRequest = database.query<{ request: string }>(
    "SELECT request FROM runs WHERE owner = ? AND thread_id = ? AND id = ?",
  );
  const selectBrackets = database.query<EventRow>(`
    SELECT last_seq, epoch, event, body FROM events
    WHERE owner = ? AND thread_id = ? AND run_id = ?
      AND event IN (${BRACKETS.map((name) => `'${name}'`).join(", ")}) ORDER BY last_seq`);

  return {
    next(owner, threadId, then) {
      const row = firstOfOne.get(owner, threadId);
      return row && claim(row, row.attempt, then);
    },
    abandoned(then) {
      const claims: Claim[] = [];
      for (const row of running.all()) {
        if (live.isHeld(keyOf(row))) continue;
        if (row.attempt < maxAttempts) claims.push(claim(row, row.attempt + 1, then));
        else giveUp(row, then);
      }
      return [...claims, ...firstOfAll.all().map((row) => claim(row, row.attempt, then))];
    },
    request,
  };

  function claim(row: RunRow, attempt: number, then: Then): Claim {
    const key = keyOf(row);
    take.run(attempt, ...rowKey(key));
    then(() => live.hold(key, attempt, row.stop ?? undefined));
    const run = toRecord({ ...row, status: "running", attempt });
    return { lease: { ...key, epoch: attempt }, run, request: request(row) };
  }

  function request(row: RunRow): RunRequest {
    // Every run that has not ended has its request, as it was given.
    return JSON.parse(selectRequest.get(row.owner, row.thread_id, row.id)?.request ?? "null") as RunRequest;
  }

  function giveUp(row: RunRow, then: Then): void {
    const key = keyOf(row);
    const entries = selectBrackets.all(...rowKey(key)).flatMap(entriesOf);
    const events = crashedTooOften(row.attempt, entries, stamp(key, now()));
    record(live.open(key), row.attempt, events.map(draftOf), then);
  }
}

export function keyOf({ owner, thread_id, id }: RunRow): RunKey {
  return { owner: ownerOf(owner), thread_id, run_id: id };
}
