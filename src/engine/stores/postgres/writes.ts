// Carries out the writes of a decision as part of a transaction.

import { NO_USAGE } from "../../../agent/core/message.ts";
import type { RunKey } from "../../../agent/core/stores.ts";
import { ownerOf, type ThreadKey, tenantText } from "../row-keys.ts";
import { callValues } from "../rows.ts";
import { POSTGRES } from "../sql/dialect.ts";
import { type SharedWrite, sqlWrites } from "../sql/writes.ts";
import type { ThreadHead, Write } from "../thread-head.ts";
import type { Transaction } from "./database.ts";
import { addMessages, endRun, insertEvents, setState, touch } from "./event-writes.ts";

const THREAD = "owner = $1 AND thread_id = $2";
const RUN = `${THREAD} AND id = $3`;

export interface WriteContext {
  readonly tx: Transaction;
  readonly thread: ThreadKey;
  /** The thread's head before the write. */
  readonly head: ThreadHead | undefined;
  readonly at: number;
  readonly leaseMs: number;
}

export function carryOut(step: WriteContext, write: Write): void {
  const { tx, thread, at } = step;
  switch (write.write) {
    case "create_thread":
      createThread(step, write);
      return;
    case "add_run":
      addRun(step, write);
      return;
    case "queue_run":
      queueRun(step, write);
      return;
    case "hold_run":
      holdRun(step, write);
      return;
    case "renew_run":
      tx.write(`UPDATE turns SET until = $3, due = $3 WHERE ${THREAD}`, [...thread, at + step.leaseMs]);
      return;
    case "release_run":
      tx.write(
        `UPDATE turns SET released = released + 1, until = 0, due = $3, turn = nextval('turn_numbers') WHERE ${THREAD}`,
        [...thread, at],
      );
      return;
    case "excuse_run":
      tx.write(`UPDATE turns SET released = released + 1 WHERE ${THREAD}`, thread);
      return;
    case "stop_run":
      tx.write(`UPDATE turns SET stop = $3 WHERE ${THREAD}`, [...thread, write.mode]);
      return;
    case "cancel_run":
      cancelRun(step, write);
      return;
    case "leave_message":
      writeShared(step, write);
      return;
    case "rewind":
      tx.write(
        `WITH gone AS (
          DELETE FROM messages WHERE ${THREAD} AND position >= (SELECT position FROM messages WHERE ${RUN})
          RETURNING octet_length(body) AS bytes)
        UPDATE threads SET message_count = message_count - (SELECT count(*) FROM gone),
          bytes = bytes - (SELECT coalesce(sum(gone.bytes), 0) FROM gone) WHERE owner = $1 AND id = $2`,
        [...thread, JSON.stringify(write.message)],
      );
      return;
    case "describe_thread":
      writeShared(step, write);
      touch(tx, thread, at);
      return;
    case "clear_thread":
      tx.write(`DELETE FROM messages WHERE ${THREAD}`, thread);
      writeShared(step, write);
      touch(tx, thread, at);
      return;
    case "delete_thread":
      tx.write("DELETE FROM threads WHERE owner = $1 AND id = $2", thread);
      return;
    case "put_call":
      putCall(step, write);
      return;
    case "drop_call":
      writeShared(step, write);
      return;
  }
}

const statementsOf = sqlWrites(POSTGRES);

function writeShared({ tx, thread, head }: WriteContext, write: SharedWrite): void {
  for (const { sql, values } of statementsOf(thread, head, write)) tx.write(sql, values);
}

type WriteOf<Name extends Write["write"]> = Extract<Write, { write: Name }>;

function createThread(
  { tx, thread, at }: WriteContext,
  { thread: made, staged }: WriteOf<"create_thread">,
): void {
  const { agent, title, metadata, parent, forked_from, messages = [], state = {} } = made;
  tx.write(
    `INSERT INTO threads
      (owner, id, agent, title, title_folded, metadata, parent, parent_thread, forked_from, outcome, created_at, updated_at, used_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'idle', $10, $10, $10)`,
    [
      ...thread,
      agent ?? null,
      title === undefined ? null : JSON.stringify(title),
      POSTGRES.folded(title),
      JSON.stringify(metadata),
      parent ? JSON.stringify(parent) : null,
      parent?.thread_id ?? null,
      forked_from ? JSON.stringify(forked_from) : null,
      at,
    ],
  );
  if (staged && staged.count > 0) adopt(tx, thread, staged);
  addMessages(
    tx,
    thread,
    messages.map((message) => ({ id: message.id, text: JSON.stringify(message) })),
  );
  setState(tx, thread, new Map(Object.entries(state)));
}

function adopt(
  tx: Transaction,
  thread: ThreadKey,
  { token, count, bytes }: NonNullable<WriteOf<"create_thread">["staged"]>,
): void {
  tx.write(
    `WITH taken AS (DELETE FROM staged WHERE ${THREAD} AND token = $3 RETURNING position, id, body)
    INSERT INTO messages (owner, thread_id, position, id, body) SELECT $1, $2, position, id, body FROM taken`,
    [...thread, token],
  );
  tx.write("UPDATE threads SET message_count = $3, bytes = $4 WHERE owner = $1 AND id = $2", [
    ...thread,
    count,
    bytes,
  ]);
}

function addRun({ tx, thread, at }: WriteContext, { run, title }: WriteOf<"add_run">): void {
  const { id, agent, metadata, idempotency_key: key, resumes = null, request } = run;
  tx.write(
    `INSERT INTO runs (owner, thread_id, id, agent, status, usage, metadata, idempotency_key, resumes, created_at, request, number)
    SELECT $1, $2, $3, $4, 'pending', $5, $6, $7, $8, $9, $10, coalesce(max(number), 0) + 1 FROM runs WHERE ${THREAD}`,
    [
      ...[...thread, id, agent, JSON.stringify(NO_USAGE), JSON.stringify(metadata)],
      ...[key === undefined ? null : JSON.stringify(key), resumes, at, JSON.stringify(request)],
    ],
  );
  tx.write(
    `UPDATE threads SET agent = $3, updated_at = $4, used_at = $4, title = coalesce(title, $5),
      title_folded = coalesce(title_folded, $6) WHERE owner = $1 AND id = $2`,
    [...thread, agent, at, title === undefined ? null : JSON.stringify(title), POSTGRES.folded(title)],
  );
}

function queueRun({ tx, thread, at }: WriteContext, { run, front }: WriteOf<"queue_run">): void {
  const place = front ? "coalesce(min(place), 0) - 1" : "coalesce(max(place), 0) + 1";
  tx.write(
    `UPDATE runs SET place = (SELECT ${place} FROM runs WHERE ${THREAD} AND status = 'pending') WHERE ${RUN}`,
    [...thread, run],
  );
  tx.write(
    "INSERT INTO turns (owner, thread_id, tenant, due) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
    [...thread, tenantText(ownerOf(thread[0]).tenant), at],
  );
}

function holdRun(
  { tx, thread, at, leaseMs }: WriteContext,
  { run, epoch, attempt, begins }: WriteOf<"hold_run">,
): void {
  const values = [...thread, tenantText(ownerOf(thread[0]).tenant), run, epoch, attempt, at + leaseMs];
  tx.write(
    `INSERT INTO turns (owner, thread_id, tenant, run_id, epoch, attempt, until, due)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $7)
    ON CONFLICT (owner, thread_id) DO UPDATE SET run_id = $4, epoch = $5, attempt = $6, until = $7, due = $7, batch = 0
      ${begins ? ", released = 0, stop = NULL, last_seq = 0" : ""}`,
    values,
  );
  const begun = begins
    ? `, begun = 1 + (SELECT coalesce(max(begun), 0) FROM runs WHERE ${THREAD} AND begun IS NOT NULL)`
    : "";
  tx.write(
    `UPDATE runs SET status = 'running', attempt = $4, place = NULL${begun},
      epochs = epochs || ARRAY[$5::bigint, 1 + (SELECT last_seq FROM turns WHERE ${THREAD})] WHERE ${RUN}`,
    [...thread, run, attempt, epoch],
  );
}

function cancelRun(
  { tx, thread, head, at }: WriteContext,
  { run, pending, ending }: WriteOf<"cancel_run">,
): void {
  const key: RunKey = { owner: ownerOf(thread[0]), thread_id: thread[1], run_id: run };
  insertEvents(tx, key, { epoch: 1, before: 0, pending });
  tx.write(`UPDATE runs SET epochs = '{1,1}' WHERE ${RUN}`, [...thread, run]);
  endRun(tx, key, { ending, last: pending.length, at });
  if (!head?.active && head?.queue.length === 1) tx.write(`DELETE FROM turns WHERE ${THREAD}`, thread);
  touch(tx, thread, at);
}

function putCall({ tx, thread }: WriteContext, { call, due_at }: WriteOf<"put_call">): void {
  tx.write(
    `INSERT INTO deferred_calls
      (owner, thread_id, tenant, call_id, run_id, tool, token_hash, state, reply, expires_at, due_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    ON CONFLICT (owner, thread_id, call_id) DO UPDATE SET
      state = excluded.state, reply = excluded.reply, due_at = excluded.due_at`,
    [
      ...thread,
      tenantText(ownerOf(thread[0]).tenant),
      JSON.stringify(call.call_id),
      ...callValues(call),
      due_at ?? null,
    ],
  );
}
