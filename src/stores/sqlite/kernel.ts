// Threads, runs and deferred calls in the file. One process has the file for itself and nothing here waits, so what is
// loaded cannot change before it is committed: only the writes of a decision need a transaction.

import { CallState, type DeferredCall, hasResult, isAwaited } from "../../core/deferred-calls.ts";
import { SPAN_EVENTS } from "../../core/grammar.ts";
import { NO_USAGE } from "../../core/message.ts";
import type { RunRequest } from "../../core/records.ts";
import type { NewRun } from "../../core/stores.ts";
import { threadExists } from "../errors.ts";
import type { Due, Kernel, Looked } from "../kernel.ts";
import { TELLS_OF_CALLS } from "../outcomes.ts";
import { ownerOf, ownerText, rowKey, type ThreadKey } from "../row-keys.ts";
import { type EventRow, entriesOf, RUN_COLUMNS, type RunRow, toRecord } from "../rows.ts";
import {
  type ActiveRun,
  headAfter,
  type Lookups,
  runAhead,
  type StoredRun,
  type ThreadHead,
  type View,
  type Write,
} from "../thread-head.ts";
import type { StoreContext } from "./context.ts";
import type { AfterCommit, Durability } from "./database.ts";
import { sqliteEvents } from "./events.ts";
import { hasEnded } from "./lifetime.ts";
import { sqliteReads } from "./reads.ts";

const THREAD = "owner = ? AND thread_id = ?";
const RUN = `${THREAD} AND id = ?`;
/** Takes the time. */
const IS_DUE = `(state IN (${statesThat(hasResult)}) OR state IN (${statesThat(isAwaited)}) AND expires_at <= ?)`;

export function sqliteKernel(context: StoreContext): Kernel<ThreadKey> {
  const { database, live, queue, changes, commit, writer, lifetime, limits } = context;
  const { now, leaseMs, tenantQueueLength } = limits;
  const reads = sqliteReads(context);

  const selectThread = database.query("SELECT 1 FROM threads WHERE owner = ? AND id = ? AND staged IS NULL");
  const selectActive = database.query<Pick<RunRow, "id" | "attempt" | "released" | "stop">>(
    `SELECT id, attempt, released, stop FROM runs WHERE ${THREAD} AND status = 'running'`,
  );
  const selectQueue = database.query<{ id: string }>(
    `SELECT id FROM runs WHERE ${THREAD} AND status = 'pending' ORDER BY place`,
  );
  const selectRun = database.query<RunRow & { request: string | null }>(
    `SELECT ${RUN_COLUMNS}, request FROM runs WHERE ${RUN}`,
  );
  const selectMessage = database.query(`SELECT 1 FROM messages WHERE ${THREAD} AND id = ?`);
  const selectInbox = database.query<{ id: string }>(
    `SELECT id FROM inbox WHERE ${THREAD} AND run_id = ? ORDER BY number`,
  );

  const insertThread = database.query(`
    INSERT INTO threads (owner, id, agent, title, title_folded, metadata, parent, parent_thread, forked_from, status, outcome, message_count, created_at, updated_at, used_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'idle', 'idle', 0, ?10, ?10, ?10)`);
  // Staged messages lie under a thread that no query shows, and that never expires.
  const insertStaged = database.query(`
    INSERT INTO threads (owner, id, metadata, status, outcome, message_count, created_at, updated_at, used_at, staged)
    VALUES (?1, ?2, '{}', 'busy', 'idle', 0, 0, 0, 0, ?3) ON CONFLICT DO NOTHING`);
  const selectStaged = database.query("SELECT 1 FROM threads WHERE owner = ? AND id = ? AND staged = ?");
  const dropStaged = database.query("DELETE FROM threads WHERE owner = ? AND id = ? AND staged IS NOT NULL");
  const dropOwnStaged = database.query("DELETE FROM threads WHERE owner = ? AND id = ? AND staged = ?");
  const revealStaged = database.query(`
    UPDATE threads SET agent = ?3, title = ?4, title_folded = ?5, metadata = ?6, parent = ?7, parent_thread = ?8,
      forked_from = ?9, status = 'idle', created_at = ?10, updated_at = ?10, used_at = ?10, staged = NULL
    WHERE owner = ?1 AND id = ?2 AND staged IS NOT NULL`);
  const describe = database.query(`
    UPDATE threads SET title = coalesce(?1, title), title_folded = coalesce(?2, title_folded),
      metadata = coalesce(?3, metadata) WHERE owner = ?4 AND id = ?5`);
  const deleteThread = database.query("DELETE FROM threads WHERE owner = ? AND id = ?");
  const deleteSlot = database.query(`DELETE FROM state WHERE ${THREAD} AND key = ?`);
  const clearings = ["messages", "state", "deferred_calls", "documents"].map((table) =>
    database.query(`DELETE FROM ${table} WHERE ${THREAD}`),
  );
  const reset = database.query(
    "UPDATE threads SET message_count = 0, bytes = 0, outcome = 'idle' WHERE owner = ? AND id = ?",
  );

  const insertRun = database.query(`
    INSERT INTO runs (owner, thread_id, id, agent, status, attempt, usage, metadata, idempotency_key, resumes, created_at, request, number)
    SELECT ?1, ?2, ?3, ?4, 'pending', 1, ?5, ?6, ?7, ?8, ?9, ?10, coalesce(max(number), 0) + 1
    FROM runs WHERE owner = ?1 AND thread_id = ?2`);
  const makeBusy = database.query(
    "UPDATE threads SET agent = ?1, status = 'busy', updated_at = ?2, used_at = ?2 WHERE owner = ?3 AND id = ?4",
  );
  const placeLast = database.query(`
    UPDATE runs SET place = 1 + (
      SELECT coalesce(max(place), 0) FROM runs WHERE owner = ?1 AND thread_id = ?2 AND status = 'pending')
    WHERE owner = ?1 AND thread_id = ?2 AND id = ?3`);
  const placeFirst = database.query(`
    UPDATE runs SET place = -1 + (
      SELECT coalesce(min(place), 0) FROM runs WHERE owner = ?1 AND thread_id = ?2 AND status = 'pending')
    WHERE owner = ?1 AND thread_id = ?2 AND id = ?3`);
  const hold = database.query(`
    UPDATE runs SET status = 'running', attempt = ?1, place = NULL, begun = coalesce(begun, 1 + (
      SELECT coalesce(max(begun), 0) FROM runs WHERE owner = ?2 AND thread_id = ?3 AND begun IS NOT NULL))
    WHERE owner = ?2 AND thread_id = ?3 AND id = ?4`);
  const countRelease = database.query(`UPDATE runs SET released = released + 1 WHERE ${RUN}`);
  const setStop = database.query(`UPDATE runs SET stop = ? WHERE ${RUN}`);
  const insertLeft = database.query(`
    INSERT INTO inbox (owner, thread_id, run_id, number, id, body)
    SELECT ?1, ?2, ?3, coalesce(max(number), 0) + 1, ?4, ?5 FROM inbox
    WHERE owner = ?1 AND thread_id = ?2 AND run_id = ?3`);

  const putCall = database.query(`
    INSERT INTO deferred_calls (owner, thread_id, call_id, run_id, tool, token_hash, state, reply, expires_at, due_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (owner, thread_id, call_id) DO UPDATE SET
      state = excluded.state, reply = excluded.reply, due_at = excluded.due_at`);
  const dropCall = database.query(`DELETE FROM deferred_calls WHERE ${THREAD} AND call_id = ?`);
  const selectByToken = database.query<{ owner: string; thread_id: string; call_id: string }>(
    "SELECT owner, thread_id, call_id FROM deferred_calls WHERE token_hash = ?",
  );
  const selectDue = database.query<{ owner: string; thread_id: string }>(`
    SELECT owner, thread_id FROM (
      SELECT owner, thread_id, min(due_at) AS due,
        row_number() OVER (PARTITION BY json_extract(owner, '$[0]') ORDER BY min(due_at)) AS turn
      FROM deferred_calls AS calls
      WHERE due_at <= ?1 AND EXISTS (
        SELECT 1 FROM threads WHERE owner = calls.owner AND id = calls.thread_id AND status <> 'busy'
            AND NOT ${hasEnded(3, 4)})
      GROUP BY owner, thread_id)
    ORDER BY turn, due LIMIT ?2`);
  const holdCalls = database.query(`UPDATE deferred_calls SET due_at = ? WHERE ${THREAD} AND ${IS_DUE}`);
  const selectDueCalls = database.query<{ call_id: string }>(
    `SELECT call_id FROM deferred_calls WHERE ${THREAD} AND ${IS_DUE}`,
  );
  const selectLastEvents = database.query<EventRow>(`
    SELECT last_seq, epoch, event, body FROM events WHERE ${THREAD} AND run_id = ?
      AND event IN (${[...SPAN_EVENTS, ...TELLS_OF_CALLS].map((name) => `'${name}'`).join(", ")}) ORDER BY last_seq`);

  return {
    limits,
    ref: (owner, id) => [ownerText(owner), id],

    async change(thread, lookups, decide) {
      // What waits to be written may end a run or change the thread: it comes first.
      writer.flush();
      database.assertOpen();
      lifetime.visit(...thread);
      const view = database.read(() => viewOf(thread, lookups));
      const { writes, result, tell } = decide(view);
      if (writes.length > 0)
        database.write(durabilityOf(writes), (afterCommit) => {
          let { head } = view;
          for (const write of writes) {
            const before = head;
            head = headAfter(head, write, ownerOf(thread[0]));
            carryOut(thread, before, write, view.now, afterCommit);
          }
        });
      if (tell) queue.call(tell);
      return result(view.now);
    },

    async stage(thread, token, messages) {
      database.assertOpen();
      database.write("durable", () => {
        insertStaged.run(...thread, token);
        if (!selectStaged.get(...thread, token)) throw threadExists(thread[1]);
        changes.addTexts(thread, messages);
      });
    },

    async unstage(thread, token) {
      database.write("fast", () => dropOwnStaged.run(...thread, token));
    },

    async eachDue<T>({ limit, except }: Due, look: (thread: ThreadKey) => Promise<Looked<T>>) {
      writer.flush();
      database.assertOpen();
      const all: T[] = [];
      const left = new Set(except);
      while (all.length < limit) {
        const thread = queue.take(left);
        if (!thread) break;
        try {
          const { found } = await look(thread);
          if (found !== undefined) all.push(found);
        } catch (error) {
          queue.putBack(thread);
          // What is taken must be executed.
          if (all.length === 0) throw error;
          break;
        }
      }
      return all;
    },

    async logOf(lease) {
      return database.read(() => selectLastEvents.all(...rowKey(lease)).flatMap(entriesOf));
    },

    async findCall(tokenHash) {
      const found = database.read(() => selectByToken.get(tokenHash));
      return found && { thread: [found.owner, found.thread_id], call_id: found.call_id };
    },

    async dueCalls(limit) {
      return database.write("fast", () =>
        selectDue.all(now(), limit, ...lifetime.ended()).map(({ owner, thread_id }) => {
          holdCalls.run(now() + leaseMs, owner, thread_id, now());
          const calls = selectDueCalls.all(owner, thread_id, now());
          return { owner: ownerOf(owner), thread_id, call_ids: calls.map(({ call_id }) => call_id) };
        }),
      );
    },

    events: sqliteEvents(context),
    runs: { ...reads.runs, waiting: async () => queue.waiting() },
    threads: reads.threads,
    deferredCalls: reads.deferredCalls,
  };

  function viewOf(thread: ThreadKey, { key, run, next, message, inbox, call, calls, room }: Lookups): View {
    const head = selectThread.get(...thread) ? headOf(thread) : undefined;
    const active = head?.active;
    const ahead = next && head && runAhead(head);
    const isHeld =
      head && active && live.isHeld({ owner: head.owner, thread_id: head.id, run_id: active.run });
    return {
      now: now(),
      head,
      // A lease that is over may still be renewed as long as no process takes the run.
      until: isHeld ? (queue.heldUntil(thread) ?? PAST) : 0,
      known: key === undefined ? undefined : reads.known(thread, key),
      run: run === undefined ? undefined : storedRun(thread, run),
      next: ahead === undefined ? undefined : storedRun(thread, ahead),
      hasMessage: message !== undefined && selectMessage.get(...thread, message) !== undefined,
      inbox: inbox && active && selectInbox.all(...thread, active.run).map(({ id }) => id),
      call: call === undefined ? undefined : reads.call(thread, call),
      calls: calls && reads.calls(thread),
      hasRoom: room && queue.count(thread[0]) < tenantQueueLength,
    };
  }

  function headOf(thread: ThreadKey): ThreadHead {
    const owner = ownerOf(thread[0]);
    const id = thread[1];
    if (!queue.isBusy(thread)) return { owner, id, active: undefined, queue: [] };
    const row = selectActive.get(...thread);
    return {
      owner,
      id,
      active: row && activeOf({ owner, thread_id: id, run_id: row.id }, row),
      queue: selectQueue.all(...thread).map((each) => each.id),
    };
  }

  function activeOf(
    key: { owner: ThreadHead["owner"]; thread_id: string; run_id: string },
    { id, attempt, released, stop }: Pick<RunRow, "id" | "attempt" | "released" | "stop">,
  ): ActiveRun {
    return { run: id, epoch: live.epochOf(key) ?? attempt, attempt, released, stop: stop ?? undefined };
  }

  function storedRun(thread: ThreadKey, id: string): StoredRun | undefined {
    const row = selectRun.get(...thread, id);
    // Every run that has not ended has its request, as it was given.
    return (
      row && {
        record: toRecord(row),
        request: row.request === null ? undefined : (JSON.parse(row.request) as RunRequest),
      }
    );
  }

  function carryOut(
    thread: ThreadKey,
    head: ThreadHead | undefined,
    write: Write,
    at: number,
    afterCommit: AfterCommit,
  ): void {
    const keyOf = (run: string) => ({ owner: ownerOf(thread[0]), thread_id: thread[1], run_id: run });
    const active = head?.active;
    switch (write.write) {
      case "create_thread":
        createThread(thread, write, at);
        return;
      case "add_run":
        addRun(thread, write.run, at);
        return;
      case "queue_run":
        (write.front ? placeFirst : placeLast).run(...thread, write.run);
        if (!active) afterCommit(() => queue.putBack(thread));
        return;
      case "hold_run":
        hold.run(write.attempt, ...thread, write.run);
        afterCommit(() => {
          live.hold(keyOf(write.run), write.epoch, active?.stop);
          queue.hold(thread);
        });
        return;
      case "release_run": {
        if (!active) return;
        countRelease.run(...thread, active.run);
        afterCommit(() => {
          live.release(keyOf(active.run));
          queue.putBack(thread);
        });
        return;
      }
      case "stop_run":
        if (!active) return;
        setStop.run(write.mode, ...thread, active.run);
        afterCommit(() => live.stop(keyOf(active.run), write.mode));
        return;
      case "cancel_run":
        commit(live.open(keyOf(write.run)), 1, write.pending, afterCommit);
        return;
      case "leave_message":
        insertLeft.run(...thread, active?.run ?? "", write.message.id, JSON.stringify(write.message));
        return;
      case "rewind":
        changes.rewind(thread, write.message);
        return;
      case "describe_thread": {
        const { title, metadata, forget = [] } = write;
        for (const key of forget) deleteSlot.run(...thread, key);
        describe.run(title ?? null, folded(title), metadata ? JSON.stringify(metadata) : null, ...thread);
        changes.touchThread(...thread);
        return;
      }
      case "clear_thread":
        for (const clearing of clearings) clearing.run(...thread);
        reset.run(...thread);
        changes.touchThread(...thread);
        return;
      case "delete_thread":
        deleteThread.run(...thread);
        return;
      case "put_call":
        putCall.run(...thread, ...callValues(write.call), write.due_at ?? null);
        return;
      case "drop_call":
        dropCall.run(...thread, write.call_id);
        return;
    }
  }

  function createThread(
    thread: ThreadKey,
    { thread: { agent, title, metadata, parent, forked_from, ...begin }, staged }: CreateThread,
    at: number,
  ): void {
    const texts = [agent ?? null, title ?? null, folded(title), JSON.stringify(metadata)];
    const above = parent ? [JSON.stringify(parent), parent.thread_id] : [null, null];
    const origin = forked_from ? JSON.stringify(forked_from) : null;
    const isStaged = staged && staged.count > 0;
    if (isStaged && !selectStaged.get(...thread, staged.token)) throw threadExists(thread[1]);
    if (!isStaged) dropStaged.run(...thread);
    (isStaged ? revealStaged : insertThread).run(...thread, ...texts, ...above, origin, at);
    changes.fill(thread, begin);
  }

  function addRun(thread: ThreadKey, run: NewRun, at: number): void {
    const { id, agent, metadata, idempotency_key: key = null, resumes = null, request } = run;
    const texts = [NO_USAGE, metadata].map((value) => JSON.stringify(value));
    insertRun.run(...thread, id, agent, ...texts, key, resumes, at, JSON.stringify(request));
    makeBusy.run(agent, at, ...thread);
  }
}

type CreateThread = Extract<Write, { write: "create_thread" }>;

/** A lease that is over may still be renewed as long as no process takes the run. */
const PAST = -1;

/**
 * A claim, or a call that was not answered yet, may be lost with the machine: everything that is built upon it is written
 * after it and durably.
 */
function durabilityOf(writes: readonly Write[]): Durability {
  const isFast = writes.every(
    (each) =>
      each.write === "hold_run" ||
      each.write === "drop_call" ||
      (each.write === "put_call" && each.call.state === "sent"),
  );
  return isFast ? "fast" : "durable";
}

/** The database folds ASCII only. */
const folded = (text: string | undefined) => text?.toLowerCase() ?? null;

const callValues = ({ call_id, run_id, tool, token_hash, state, reply, expires_at }: DeferredCall) => [
  call_id,
  run_id,
  tool,
  token_hash,
  state,
  reply === undefined ? null : JSON.stringify(reply),
  Date.parse(expires_at),
];

/** As SQL has them. */
function statesThat(fits: (state: CallState) => boolean): string {
  return CallState.options
    .filter(fits)
    .map((state) => `'${state}'`)
    .join(", ");
}
