// Threads, runs and deferred calls in the file. One process has the file for itself and nothing here waits, so what is
// loaded cannot change before it is committed: only the writes of a decision need a transaction.

import { hasResult, isAwaited } from "../../core/deferred-calls.ts";
import type { RunRequest } from "../../core/records.ts";
import { latestLeaseEnd } from "../clock-set-back.ts";
import { PAST } from "../fair-queue.ts";
import type { Due, Kernel, Looked } from "../kernel.ts";
import { TELLS_OF_CRASHES } from "../outcomes.ts";
import { ownerOf, ownerText, rowKey, type ThreadKey, threadText } from "../row-keys.ts";
import {
  type EventRow,
  entriesOf,
  RECORD_COLUMNS,
  type RecordRow,
  type RunRow,
  statesThat,
  toRecord,
} from "../rows.ts";
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
import { sqliteEvents } from "./events.ts";
import { hasEnded } from "./lifetime.ts";
import { sqliteReads } from "./reads.ts";
import { sqliteWrites } from "./writes.ts";

const THREAD = "owner = ? AND thread_id = ?";
const RUN = `${THREAD} AND id = ?`;
/** Takes the time. */
const IS_DUE = `(state IN (${statesThat(hasResult)}) OR state IN (${statesThat(isAwaited)}) AND expires_at <= ?)`;

export function sqliteKernel(context: StoreContext): Kernel<ThreadKey> {
  const { database, live, queue, writer, lifetime, removals, flights, limits } = context;
  const { now, leaseMs } = limits;
  const reads = sqliteReads(context);
  const writes = sqliteWrites(context);

  const selectThread = database.query("SELECT 1 FROM threads WHERE owner = ? AND id = ? AND staged IS NULL");
  const selectActive = database.query<Pick<RunRow, "id" | "attempt" | "released" | "stop">>(
    `SELECT id, attempt, released, stop FROM runs WHERE ${THREAD} AND status = 'running'`,
  );
  const selectQueue = database.query<{ id: string }>(
    `SELECT id FROM runs WHERE ${THREAD} AND status = 'pending' ORDER BY place`,
  );
  const selectRun = database.query<RecordRow & { request: string | null }>(
    `SELECT ${RECORD_COLUMNS}, request FROM runs WHERE ${RUN}`,
  );
  const selectMessage = database.query(`SELECT 1 FROM messages WHERE ${THREAD} AND id = ?`);
  const selectLast = database.query<{ id: string }>(
    `SELECT id FROM messages WHERE ${THREAD} ORDER BY position DESC LIMIT 1`,
  );
  const selectInbox = database.query<{ id: string }>(
    `SELECT id FROM inbox WHERE ${THREAD} AND run_id = ? ORDER BY number`,
  );

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
  const hurryResults = database.query(
    `UPDATE deferred_calls SET due_at = ?1 WHERE due_at > ?2 AND state IN (${statesThat(hasResult)})`,
  );
  const holdCalls = database.query(`UPDATE deferred_calls SET due_at = ? WHERE ${THREAD} AND ${IS_DUE}`);
  const selectDueCalls = database.query<{ call_id: string }>(
    `SELECT call_id FROM deferred_calls WHERE ${THREAD} AND ${IS_DUE}`,
  );
  /** When deferred calls were last looked for. */
  let lookedAt = Number.POSITIVE_INFINITY;
  const selectLastEvents = database.query<EventRow>(`
    SELECT last_seq, epoch, event, body FROM events WHERE ${THREAD} AND run_id = ?
      AND event IN (${TELLS_OF_CRASHES.map((name) => `'${name}'`).join(", ")}) ORDER BY last_seq`);

  return {
    limits,
    ref: (owner, id) => [ownerText(owner), id],

    async change(thread, lookups, decide) {
      for (;;) {
        // What waits to be written may end a run or change the thread: it comes first.
        writer.flushThread(thread);
        database.assertOpen();
        const rest = lifetime.visit(...thread);
        if (rest) {
          await rest;
          continue;
        }
        const view = database.read(() => viewOf(thread, lookups));
        let decision: ReturnType<typeof decide>;
        try {
          decision = decide(view);
        } catch (error) {
          await landed(thread);
          throw error;
        }
        const copy = writes.dropCopy(thread, decision.writes);
        if (copy) {
          await copy;
          continue;
        }
        const carriedOut = carryOut(thread, view, decision.writes);
        const removed = removals.of(thread);
        await carriedOut;
        if (decision.tell) queue.call(decision.tell);
        await removed;
        return decision.result(view.now);
      }
    },

    stage: writes.stage,
    unstage: writes.unstage,

    async eachDue<T>({ limit, except }: Due, look: (thread: ThreadKey) => Promise<Looked<T>>) {
      writer.flush();
      database.assertOpen();
      const all: T[] = [];
      const left = new Set(except);
      const later: ThreadKey[] = [];
      while (all.length < limit) {
        const thread = queue.take(left);
        if (!thread) break;
        try {
          const looked = await look(thread);
          if (!("until" in looked)) all.push(looked.found);
          else if (looked.until !== undefined) later.push(thread);
        } catch (error) {
          queue.putBack(thread);
          // What is taken must be executed.
          if (all.length === 0) throw error;
          break;
        }
      }
      for (const thread of later) if (queue.heldUntil(thread) === undefined) queue.putBack(thread);
      return all;
    },

    async logOf(lease) {
      writer.moveToLog(lease);
      return database.read(() => selectLastEvents.all(...rowKey(lease)).flatMap(entriesOf));
    },

    async findCall(tokenHash) {
      const found = database.read(() => selectByToken.get(tokenHash));
      return found && { thread: [found.owner, found.thread_id], call_id: found.call_id };
    },

    async dueCalls(limit) {
      return database.write(() => {
        const time = now();
        // A result is due within a lease, or the clock was set back, perhaps while the file was closed.
        if (time < lookedAt) hurryResults.run(time, latestLeaseEnd(time, leaseMs));
        lookedAt = time;
        return selectDue.all(time, limit, ...lifetime.ended()).map(({ owner, thread_id }) => {
          holdCalls.run(time + leaseMs, owner, thread_id, time);
          const calls = selectDueCalls.all(owner, thread_id, time);
          return { owner: ownerOf(owner), thread_id, call_ids: calls.map(({ call_id }) => call_id) };
        });
      });
    },

    events: sqliteEvents(context),
    runs: { ...reads.runs, waiting: async () => queue.waiting() },
    threads: reads.threads,
    deferredCalls: reads.deferredCalls,
  };

  /** Commits at once, and resolves when all of it is as durable as it must be; without writes, when what was decided upon is. */
  async function carryOut(thread: ThreadKey, { head, now }: View, all: readonly Write[]): Promise<void> {
    if (all.length === 0) return landed(thread);
    const effects: (() => void)[] = [];
    database.write((afterCommit) => {
      const after = { afterCommit, afterFlush: (effect: () => void) => void effects.push(effect) };
      let before = head;
      for (const write of all) {
        writes.carryOut(thread, before, write, now, after);
        before = headAfter(before, write, ownerOf(thread[0]));
      }
    });
    const show = () => {
      for (const effect of effects) effect();
    };
    if (mayBeLost(all)) return show();
    const landing = database.flushed().then(show);
    flights.add(threadText(thread), landing);
    await landing;
  }

  /** Resolves when everything that is committed of the thread is on disk. */
  async function landed(thread: ThreadKey): Promise<void> {
    await flights.of(threadText(thread));
    database.assertOpen();
  }

  function viewOf(thread: ThreadKey, lookups: Lookups): View {
    const { key, run, next, message, last, inbox, call, calls, busyThreads } = lookups;
    const head = selectThread.get(...thread) ? headOf(thread) : undefined;
    const active = head?.active;
    const ahead = next && head && runAhead(head);
    const isHeld =
      head && active && live.isHeld({ owner: head.owner, thread_id: head.id, run_id: active.run });
    return {
      now: now(),
      head,
      until: isHeld ? (queue.heldUntil(thread) ?? PAST) : 0,
      known: key === undefined ? undefined : reads.known(thread, key),
      run: run === undefined ? undefined : storedRun(thread, run),
      next: ahead === undefined ? undefined : storedRun(thread, ahead),
      hasMessage: message !== undefined && selectMessage.get(...thread, message) !== undefined,
      isLast: last !== undefined && selectLast.get(...thread)?.id === last,
      inbox: inbox && active && selectInbox.all(...thread, active.run).map(({ id }) => id),
      call: call === undefined ? undefined : reads.call(thread, call),
      calls: calls && reads.calls(thread),
      busyThreads: busyThreads && queue.count(thread[0]),
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
    // Every run that has not ended still has its request, as it was sent.
    return (
      row && {
        record: toRecord(row),
        request: row.request === null ? undefined : (JSON.parse(row.request) as RunRequest),
      }
    );
  }
}

/**
 * Whether the writes may be lost with the machine. A claim may, and a call that was not answered yet: everything that is built upon
 * it is written after it and durably.
 */
const mayBeLost = (writes: readonly Write[]): boolean =>
  writes.every(
    (each) =>
      each.write === "hold_run" ||
      each.write === "renew_run" ||
      each.write === "drop_call" ||
      (each.write === "put_call" && each.call.state === "sent"),
  );
