// Writes the events of a run and their effects to the tables: messages, state, and the end of the run. All writes are
// part of a transaction.

import type { ThreadStatus } from "../../../agent/core/records.ts";
import type { RunKey } from "../../../agent/core/stores.ts";
import { merge } from "../../../protocol/patch.ts";
import type { EventWrite } from "../event-writes.ts";
import { rowsOf } from "../log-rows.ts";
import type { MessageText, PendingEvent, RunOutcome } from "../outcomes.ts";
import { ownerText, rowKey, type ThreadKey } from "../row-keys.ts";
import { problemOf } from "../rows.ts";
import type { Transaction } from "./database.ts";

/**
 * Returns log rows in the form that the statements expect: the numbers of their last entries, the event names and the
 * texts.
 */
export function columnsOf(pending: readonly PendingEvent[], before: number) {
  let seq = before;
  const rows = rowsOf(pending).map(({ event, body, count }) => {
    seq += count;
    return { seq, event, body };
  });
  return {
    seqs: rows.map((row) => row.seq),
    names: rows.map((row) => row.event),
    bodies: rows.map((row) => row.body),
  };
}

export function insertEvents(
  tx: Transaction,
  run: RunKey,
  { epoch, before, pending }: { epoch: number; before: number; pending: readonly PendingEvent[] },
): void {
  const { seqs, names, bodies } = columnsOf(pending, before);
  tx.write(
    `INSERT INTO events (owner, thread_id, run_id, last_seq, epoch, event, body)
    SELECT $1, $2, $3, seq, $4, name, body FROM unnest($5::bigint[], $6::text[], $7::text[]) AS line (seq, name, body)`,
    [...rowKey(run), epoch, seqs, names, bodies],
  );
}

/** Skips messages whose id is already in the thread. */
export function addMessages(tx: Transaction, thread: ThreadKey, messages: readonly MessageText[]): void {
  if (messages.length === 0) return;
  tx.write(
    `WITH added AS (
      INSERT INTO messages (owner, thread_id, position, id, body)
      SELECT $1, $2, number + (SELECT coalesce(max(position), 0) FROM messages WHERE owner = $1 AND thread_id = $2), id, body
      FROM unnest($3::text[], $4::text[]) WITH ORDINALITY AS new (id, body, number)
      ON CONFLICT (owner, thread_id, id) DO NOTHING RETURNING octet_length(body) AS bytes)
    UPDATE threads SET message_count = message_count + (SELECT count(*) FROM added),
      bytes = bytes + (SELECT coalesce(sum(added.bytes), 0) FROM added) WHERE owner = $1 AND id = $2`,
    [...thread, messages.map(({ id }) => JSON.stringify(id)), messages.map(({ text }) => text)],
  );
}

/** Sets values in the state. `undefined` deletes a value. */
export function setState(tx: Transaction, thread: ThreadKey, slots: ReadonlyMap<string, unknown>): void {
  const kept = [...slots].filter(([, value]) => value !== undefined);
  const gone = [...slots.keys()].filter((key) => slots.get(key) === undefined);
  if (gone.length > 0) forgetState(tx, thread, gone);
  if (kept.length === 0) return;
  tx.write(
    `INSERT INTO state (owner, thread_id, key, value)
    SELECT $1, $2, key, value FROM unnest($3::text[], $4::text[]) AS slot (key, value)
    ON CONFLICT (owner, thread_id, key) DO UPDATE SET value = excluded.value`,
    [...thread, kept.map(([key]) => JSON.stringify(key)), kept.map(([, value]) => JSON.stringify(value))],
  );
}

function forgetState(tx: Transaction, thread: ThreadKey, keys: readonly string[]): void {
  tx.write("DELETE FROM state WHERE owner = $1 AND thread_id = $2 AND key = ANY ($3)", [
    ...thread,
    keys.map((key) => JSON.stringify(key)),
  ]);
}

/** Returns the current values that the writes merge into. */
export async function patchedState(
  tx: Transaction,
  thread: ThreadKey,
  writes: readonly EventWrite[],
): Promise<Map<string, unknown>> {
  const keys = writes.flatMap((each) => (each.write === "patch_state" ? [JSON.stringify(each.key)] : []));
  if (keys.length === 0) return new Map();
  const rows = await tx.rows<{ key: string; value: string }>(
    "SELECT key, value FROM state WHERE owner = $1 AND thread_id = $2 AND key = ANY ($3)",
    [...thread, keys],
  );
  return new Map(rows.map(({ key, value }) => [JSON.parse(key) as string, JSON.parse(value)]));
}

/** Returns the values after the writes. `before` is the result of `patchedState`. `undefined` means that the value is deleted. */
export function stateAfter(
  before: ReadonlyMap<string, unknown>,
  writes: readonly EventWrite[],
): Map<string, unknown> {
  const after = new Map<string, unknown>();
  for (const each of writes) {
    if (each.write === "set_state") after.set(each.key, each.value);
    if (each.write === "delete_state") after.set(each.key, undefined);
    if (each.write !== "patch_state") continue;
    const { key, patch } = each;
    after.set(key, merge(after.has(key) ? after.get(key) : before.get(key), patch));
  }
  return after;
}

/** Records that the run has ended with the entry `last`, and empties its inbox. */
export function endRun(
  tx: Transaction,
  run: RunKey,
  { ending, last, at }: { readonly ending: RunOutcome; readonly last: number; readonly at: number },
): void {
  const { status, stop_reason = null, usage } = ending;
  const problem = problemOf(ending);
  tx.write(
    `UPDATE runs SET status = $4, stop_reason = $5, error = $6, usage = $7, ended_at = $8, last_seq = $9,
      request = NULL, place = NULL WHERE owner = $1 AND thread_id = $2 AND id = $3`,
    [...rowKey(run), status, stop_reason, problem, JSON.stringify(usage), at, last],
  );
  tx.write("DELETE FROM inbox WHERE owner = $1 AND thread_id = $2 AND run_id = $3", rowKey(run));
}

/** Updates the thread's status when its active run ends with this outcome. */
export function setOutcome(tx: Transaction, { owner, thread_id }: RunKey, outcome: ThreadStatus): void {
  tx.write("UPDATE threads SET outcome = $3 WHERE owner = $1 AND id = $2", [
    ownerText(owner),
    thread_id,
    outcome,
  ]);
}

/** Records that a thread changed at `at`. */
export function touch(tx: Transaction, thread: ThreadKey, at: number): void {
  tx.write("UPDATE threads SET updated_at = $3, used_at = $3 WHERE owner = $1 AND id = $2", [...thread, at]);
}

/**
 * Records that no run is active on the thread. Its next run can then be taken. Without a next run, the thread is no
 * longer checked.
 */
export function freeThread(tx: Transaction, thread: ThreadKey, at: number): void {
  tx.write(
    `DELETE FROM turns WHERE owner = $1 AND thread_id = $2
      AND NOT EXISTS (SELECT 1 FROM runs WHERE owner = $1 AND thread_id = $2 AND status = 'pending')`,
    thread,
  );
  tx.write(
    `UPDATE turns SET run_id = NULL, epoch = 0, attempt = 1, released = 0, stop = NULL, last_seq = 0, batch = 0, until = 0, due = $3,
      turn = nextval('turn_numbers') WHERE owner = $1 AND thread_id = $2`,
    [...thread, at],
  );
}
