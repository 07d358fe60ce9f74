// Writes events of a run and their effects: messages, state, and the end of the run.

import type { UserMessage } from "../../../agent/core/message.ts";
import type { NewThread } from "../../../agent/core/stores.ts";
import { merge } from "../../../protocol/patch.ts";
import { type EventWrite, endIn, type RunEnd, type StateWrite, writesOf } from "../event-writes.ts";
import { entriesOfPending, rowsOf } from "../log-rows.ts";
import type { Limits } from "../options.ts";
import { hasEnd, type MessageText, type PendingEvent, stamp } from "../outcomes.ts";
import { type RowKey, rowKey, type ThreadKey } from "../row-keys.ts";
import { problemOf } from "../rows.ts";
import type { AfterCommit, Database } from "./database.ts";
import type { LiveRun, LiveRuns, Queue } from "./live-runs.ts";
import type { Removals } from "./removals.ts";
import type { Tail } from "./tail.ts";

const RUN = "owner = ? AND thread_id = ? AND run_id = ?";
const THREAD = "owner = ? AND thread_id = ?";

/** The changes that a run makes to its thread. */
interface Growth {
  messages: number;
  bytes: number;
}

/** `busy` while a run is active or waiting; otherwise, the outcome of the last run. */
const STATUS = `CASE WHEN
    EXISTS (SELECT 1 FROM runs WHERE owner = threads.owner AND thread_id = threads.id AND status = 'running') OR
    EXISTS (SELECT 1 FROM runs WHERE owner = threads.owner AND thread_id = threads.id AND status = 'pending')
  THEN 'busy' ELSE outcome END`;

export interface ContentChanges {
  /**
   * Carries out the effects of a run's events. `last` is the number of the last event. Call this inside a transaction.
   */
  apply(run: LiveRun, writes: readonly EventWrite[], last: number): void;
  /** Writes a thread's initial content. Call this inside a transaction. */
  fill(thread: ThreadKey, begin: Pick<NewThread, "messages" | "state">): void;
  /** Adds messages that are already serialized. Call this inside a transaction. */
  addTexts(thread: ThreadKey, messages: readonly MessageText[]): void;
  /** Removes a message and all later ones. Call this inside a transaction. */
  rewind(thread: ThreadKey, messageId: string, afterCommit: AfterCommit): void;
  /** Updates a thread's status and times. Call this inside a transaction. */
  touchThread(owner: string, threadId: string): void;
  /** Returns `active` if a run is active on the thread, or `waiting` if one waits. */
  busyWith(owner: string, threadId: string): "active" | "waiting" | undefined;
  /** Returns a run's queued messages that are not in the thread yet, oldest first. */
  inbox(key: RowKey): UserMessage[];
}

export function createChanges(database: Database, removals: Removals, { now }: Limits): ContentChanges {
  const insertMessage = database.query(`
    INSERT INTO messages (owner, thread_id, position, id, body)
    SELECT ?1, ?2, coalesce(max(position), 0) + 1, ?3, ?4 FROM messages WHERE owner = ?1 AND thread_id = ?2
    ON CONFLICT (owner, thread_id, id) DO NOTHING`);
  const GROWN = "message_count = message_count + ?1, bytes = bytes + ?2";
  const count = database.query(`UPDATE threads SET ${GROWN} WHERE owner = ?3 AND id = ?4`);
  const grow = database.query(
    `UPDATE threads SET ${GROWN}, updated_at = ?5, used_at = ?5 WHERE owner = ?3 AND id = ?4`,
  );
  const end = database.query(`
    UPDATE threads SET ${GROWN}, updated_at = ?5, used_at = ?5, outcome = coalesce(?6, outcome),
      status = CASE WHEN ?7 THEN 'busy' ELSE coalesce(?6, outcome) END WHERE owner = ?3 AND id = ?4`);
  // No long texts are read, because the row headers contain the sizes.
  const selectFrom = database.query<{ first: number | null; rows: number; bytes: number }>(`
    SELECT min(position) AS first, count(*) AS rows, sum(octet_length(body)) AS bytes
    FROM messages WHERE owner = ?1 AND thread_id = ?2 AND position >= (
      SELECT position FROM messages WHERE owner = ?1 AND thread_id = ?2 AND id = ?3)`);
  const takeLeft = database.query(`DELETE FROM inbox WHERE ${RUN} AND id = ?`);
  const selectLeft = database.query<{ body: string }>(`SELECT body FROM inbox WHERE ${RUN} ORDER BY number`);
  const clearLeft = database.query(`DELETE FROM inbox WHERE ${RUN}`);
  const selectSlot = database.query<{ value: string }>(`SELECT value FROM state WHERE ${THREAD} AND key = ?`);
  const deleteSlot = database.query(`DELETE FROM state WHERE ${THREAD} AND key = ?`);
  const upsertSlot = database.query(
    "INSERT INTO state (owner, thread_id, key, value) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
  );
  const endRun = database.query(`
    UPDATE runs SET status = ?, stop_reason = ?, error = ?, usage = ?, ended_at = ?, last_seq = ?,
      request = NULL, stop = NULL, place = NULL
    WHERE owner = ? AND thread_id = ? AND id = ?`);
  const selectRunning = database.query<{ id: string }>(
    `SELECT id FROM runs WHERE ${THREAD} AND status = 'running'`,
  );
  const selectWaiting = database.query<{ id: string }>(
    `SELECT id FROM runs WHERE ${THREAD} AND status = 'pending' ORDER BY place LIMIT 1`,
  );
  const touch = database.query(
    `UPDATE threads SET updated_at = ?, used_at = ?, status = ${STATUS} WHERE owner = ? AND id = ?`,
  );

  return {
    apply(run, writes, last) {
      const key = rowKey(run.key);
      const thread = [key[0], key[1]] as const;
      const growth = { messages: 0, bytes: 0 };
      for (const write of writes) {
        if (write.write === "add_message") takeIn(run, key, write.message, growth);
        else if (write.write !== "end_run") setSlot(thread, write);
      }
      const end = endIn(writes);
      if (end) settle(run, end, last, growth);
      else if (writes.length > 0) grow.run(growth.messages, growth.bytes, ...thread, now());
    },
    fill(thread, { messages = [], state = {} }) {
      addTexts(
        thread,
        messages.map((message) => ({ id: message.id, text: JSON.stringify(message) })),
      );
      for (const [key, value] of Object.entries(state)) setSlot(thread, { write: "set_state", key, value });
    },
    addTexts,
    rewind(thread, messageId, afterCommit) {
      const from = selectFrom.get(...thread, messageId);
      if (!from || from.first === null) return;
      count.run(-from.rows, -from.bytes, ...thread);
      removals.removeMessages(thread, from.first, afterCommit);
    },
    touchThread(owner, threadId) {
      touch.run(now(), now(), owner, threadId);
    },
    busyWith,
    inbox(key) {
      // Not validated, because only `steer` fills this column.
      return selectLeft.all(...key).map(({ body }) => JSON.parse(body) as UserMessage);
    },
  };

  function busyWith(owner: string, threadId: string) {
    if (selectRunning.get(owner, threadId)) return "active";
    return selectWaiting.get(owner, threadId) && "waiting";
  }

  /** Moves the message from the inbox to the thread, if it was in the inbox. */
  function takeIn(run: LiveRun, key: RowKey, message: MessageText, growth: Growth): void {
    addText([key[0], key[1]], message, growth);
    if (run.mayHaveLeft) takeLeft.run(...key, message.id);
  }

  function addTexts(thread: ThreadKey, messages: readonly MessageText[]): void {
    const growth = { messages: 0, bytes: 0 };
    for (const message of messages) addText(thread, message, growth);
    if (growth.messages > 0) count.run(growth.messages, growth.bytes, ...thread);
  }

  function addText(thread: ThreadKey, { id, text }: MessageText, growth: Growth): void {
    if (insertMessage.run(...thread, id, text) === 0) return;
    growth.messages++;
    growth.bytes += Buffer.byteLength(text);
  }

  function setSlot(thread: ThreadKey, write: StateWrite): void {
    const { key } = write;
    if (write.write === "delete_state") {
      deleteSlot.run(...thread, key);
      return;
    }
    const before = write.write === "patch_state" ? selectSlot.get(...thread, key) : undefined;
    const after =
      write.write === "patch_state" ? merge(before && JSON.parse(before.value), write.patch) : write.value;
    upsertSlot.run(...thread, key, JSON.stringify(after));
  }

  function settle(run: LiveRun, { outcome, thread }: RunEnd, seq: number, { messages, bytes }: Growth): void {
    const { status, stop_reason = null, usage } = outcome;
    const key = rowKey(run.key);
    const problem = problemOf(outcome);
    endRun.run(status, stop_reason, problem, JSON.stringify(usage), now(), seq, ...key);
    if (run.mayHaveLeft) clearLeft.run(...key);
    // A run that has only waited keeps the status that the previous run left.
    const left = run.hold ? thread : null;
    const isBusy = busyWith(key[0], key[1]) !== undefined;
    end.run(messages, bytes, key[0], key[1], now(), left, Number(isBusy));
  }
}

/** The number of added entries after which old rows are deleted. */
const DROP_EVERY = 1024;

/** Work that follows a transaction, unless the transaction fails. */
export interface After {
  /** Runs `effect` once the transaction is committed, so this process can continue. */
  readonly afterCommit: AfterCommit;
  /** Runs `effect` once others can rely on the change. If necessary, this means that the data is on disk. */
  readonly afterFlush: (effect: () => void) => void;
}

/**
 * Writes events and their effects, after the events of the same run in the tail, as part of the transaction that
 * `after` belongs to. Call this at most once per run and transaction. Readers get the events after the flush.
 */
export type EventCommitter = (
  run: LiveRun,
  epoch: number,
  pending: readonly PendingEvent[],
  after: After,
) => void;

export function createEventCommitter(
  database: Database,
  parts: { live: LiveRuns; queue: Queue; changes: ContentChanges; tail: Tail; limits: Limits },
): EventCommitter {
  const { live, queue, changes, tail, limits } = parts;
  const insertRow = database.query(
    "INSERT INTO events (owner, thread_id, run_id, last_seq, epoch, event, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const dropRows = database.query(
    "DELETE FROM events WHERE owner = ? AND thread_id = ? AND run_id = ? AND last_seq <= ?",
  );

  return (run, epoch, given, { afterCommit, afterFlush }) => {
    const key = rowKey(run.key);
    const ends = hasEnd(given);
    const inbox = ends && run.mayHaveLeft ? changes.inbox(key) : [];
    const before = inbox.length > 0 ? { inbox, stamp: stamp(run.key, limits.now()) } : undefined;
    const { appended, writes } = writesOf(given, before);
    const { written } = run;
    const last = written + appended.length;
    const kept = tail.of(run);
    const stored = written - (kept?.pending.length ?? 0);
    if (kept) {
      insertRows(key, kept.epoch, stored, kept.pending);
      tail.forget(run, afterCommit);
    }
    insertRows(key, epoch, written, appended);
    dropOld(key, stored, last);
    changes.apply(run, writes, last);
    if (ends) moveOn([key[0], key[1]], afterCommit);
    afterCommit(() => {
      run.written = last;
      run.hasEnded ||= ends;
    });
    afterFlush(() => {
      for (const entry of entriesOfPending(appended, epoch, last)) run.log.push(entry);
      if (ends) live.end(run);
      else run.log.ring();
    });
  };

  function insertRows(key: RowKey, epoch: number, before: number, pending: readonly PendingEvent[]): void {
    let seq = before;
    for (const { event, body, count } of rowsOf(pending)) {
      seq += count;
      insertRow.run(...key, seq, epoch, event, body);
    }
  }

  /** Handles the end of a run of the thread. */
  function moveOn(thread: ThreadKey, afterCommit: AfterCommit): void {
    const left = changes.busyWith(...thread);
    if (left === "waiting")
      afterCommit(() => {
        queue.putBack(thread);
        queue.call({ call: "waiting" });
      });
    if (left === undefined) afterCommit(() => queue.drop(thread));
  }

  function dropOld(key: RowKey, before: number, last: number): void {
    const surplus = last - limits.eventsPerRun;
    const isDue = Math.floor(last / DROP_EVERY) > Math.floor(before / DROP_EVERY);
    if (surplus > 0 && isDue) dropRows.run(...key, surplus);
  }
}
