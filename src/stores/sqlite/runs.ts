// Runs in the file: who may execute what. Every method changes what it changes in one transaction.

import { NO_USAGE } from "../../core/message.ts";
import type { Claim, NewRun, RunStore, StartResult, StopMode, WhenBusy } from "../../core/stores.ts";
import { draftOf, neverStarted, stamp } from "../endings.ts";
import { queueRoom } from "../options.ts";
import { badCursor, pageOf } from "../page.ts";
import { inboxFull, queueFull, runExists, tenantFull, threadBusy } from "../refusals.ts";
import { createClaims, keyOf } from "./claims.ts";
import type { Then } from "./database.ts";
import type { Engine } from "./engine.ts";
import { ownerText, rowKey, type ThreadKey } from "./keys.ts";
import { RUN_COLUMNS, type RunRow, toRecord } from "./run-rows.ts";

export function sqliteRuns(engine: Engine): RunStore {
  const { database, live, queue, changes, record, writer, lifetime, limits } = engine;
  const { now, leaseMs, queueLength, tenantQueueLength, inboxLength } = limits;
  const claims = createClaims(engine);
  const IN_THREAD = "owner = ? AND thread_id = ?";
  const RUN = `${IN_THREAD} AND id = ?`;

  const select = database.query<RunRow>(`SELECT ${RUN_COLUMNS} FROM runs WHERE ${RUN}`);
  const selectKnown = database.query<RunRow>(
    `SELECT ${RUN_COLUMNS} FROM runs WHERE ${IN_THREAD} AND idempotency_key = ?`,
  );
  const selectActive = database.query<RunRow>(
    `SELECT ${RUN_COLUMNS} FROM runs WHERE ${IN_THREAD} AND status = 'running'`,
  );
  const numberOf = database.query<{ number: number }>(`SELECT number FROM runs WHERE ${RUN}`);
  const selectPage = database.query<RunRow>(
    `SELECT ${RUN_COLUMNS} FROM runs WHERE ${IN_THREAD} AND number < ? ORDER BY number DESC LIMIT ?`,
  );
  const countWaiting = database.query<{ count: number }>(
    `SELECT count(*) AS count FROM runs WHERE ${IN_THREAD} AND status = 'pending'`,
  );
  const insertThread = database.query(`
    INSERT INTO threads (owner, id, metadata, status, outcome, message_count, created_at, updated_at, used_at)
    VALUES (?1, ?2, '{}', 'idle', 'idle', 0, ?3, ?3, ?3) ON CONFLICT DO NOTHING`);
  const setAgent = database.query("UPDATE threads SET agent = ? WHERE owner = ? AND id = ?");
  const insertRun = database.query<RunRow>(`
    INSERT INTO runs (owner, thread_id, id, agent, status, attempt, usage, metadata, idempotency_key, resumes, created_at, request, number, place)
    SELECT ?1, ?2, ?3, ?4, 'pending', 1, ?5, ?6, ?7, ?8, ?9, ?10, coalesce(max(number), 0) + 1, CASE ?11
      WHEN 'front' THEN coalesce(min(place), 0) - 1 ELSE coalesce(max(place), 0) + 1 END
    FROM runs WHERE owner = ?1 AND thread_id = ?2 RETURNING ${RUN_COLUMNS}`);
  const selectLastBegun = database.query<RunRow>(
    `SELECT ${RUN_COLUMNS} FROM runs WHERE ${IN_THREAD} AND begun IS NOT NULL ORDER BY begun DESC LIMIT 1`,
  );
  const selectBegunNext = database.query<RunRow>(
    `SELECT ${RUN_COLUMNS} FROM runs WHERE ${IN_THREAD} AND begun > ? ORDER BY begun LIMIT 1`,
  );
  const selectBegun = database.query<{ begun: number | null }>(`SELECT begun FROM runs WHERE ${RUN}`);
  const countRelease = database.query(`UPDATE runs SET released = released + 1 WHERE ${RUN}`);
  const setStop = database.query(`UPDATE runs SET stop = ? WHERE ${RUN}`);
  const selectMessage = database.query(`SELECT 1 FROM messages WHERE ${IN_THREAD} AND id = ?`);
  const insertLeft = database.query(`
    INSERT INTO inbox (owner, thread_id, run_id, number, id, body)
    SELECT ?1, ?2, ?3, coalesce(max(number), 0) + 1, ?4, ?5 FROM inbox
    WHERE owner = ?1 AND thread_id = ?2 AND run_id = ?3`);

  return {
    leaseMs,

    async start(owner, run, whenBusy) {
      const thread: ThreadKey = [ownerText(owner), run.thread_id];
      visit(thread);
      return database.write("durable", (then) => {
        const known = knownAs(thread, run.idempotency_key);
        if (known) return known;
        const isFree = mayCome(thread, run, whenBusy);
        const row = append(thread, run, whenBusy);
        const claim = isFree ? claims.next(...thread, then) : undefined;
        if (claim) return { outcome: "claimed", claim };
        return { outcome: "queued", run: toRecord(row) };
      });
    },

    async enqueue(owner, run, whenBusy) {
      const thread: ThreadKey = [ownerText(owner), run.thread_id];
      visit(thread);
      return database.write("durable", (then) => {
        const known = knownAs(thread, run.idempotency_key);
        if (known) return known;
        const isOneMore = mayCome(thread, run, whenBusy);
        if (isOneMore && queue.count(thread[0]) >= tenantQueueLength) throw tenantFull(tenantQueueLength);
        const row = append(thread, run, whenBusy);
        then(() => (isOneMore ? queue.wait(thread) : queue.call({ call: "waiting" })));
        return { outcome: "queued", run: toRecord(row) };
      });
    },

    async get(owner, threadId, runId) {
      lifetime.visit(ownerText(owner), threadId);
      const row = database.read(() => select.get(ownerText(owner), threadId, runId));
      return row && toRecord(row);
    },

    async known(owner, threadId, key) {
      const thread: ThreadKey = [ownerText(owner), threadId];
      lifetime.visit(...thread);
      const row = database.read(() => selectKnown.get(...thread, key));
      return row && toRecord(row);
    },

    async list(owner, threadId, { limit, cursor }) {
      const thread: ThreadKey = [ownerText(owner), threadId];
      lifetime.visit(...thread);
      return database.read(() => {
        const end = cursor === undefined ? FIRST_PAGE : numberOf.get(...thread, cursor);
        if (!end) throw badCursor(cursor ?? "");
        const page = pageOf(selectPage.all(...thread, end.number, limit + 1), limit, (row) => row.id);
        return { ...page, items: page.items.map(toRecord) };
      });
    },

    async active(owner, threadId) {
      lifetime.visit(ownerText(owner), threadId);
      const row = database.read(() => selectActive.get(ownerText(owner), threadId));
      return row && toRecord(row);
    },

    async claimNext(owner, threadId) {
      const thread: ThreadKey = [ownerText(owner), threadId];
      visit(thread);
      return database.write("durable", (then) =>
        queue.isHeld(thread) ? undefined : claims.abandoned(...thread, then),
      );
    },

    async claimAbandoned(limit) {
      writer.flush();
      const looked: ThreadKey[] = [];
      try {
        return database.write("durable", (then) => {
          const taken: Claim[] = [];
          while (taken.length < limit) {
            const thread = queue.take();
            if (!thread) break;
            looked.push(thread);
            const claim = claims.abandoned(...thread, then);
            if (claim) taken.push(claim);
          }
          return taken;
        });
      } catch (error) {
        for (const thread of looked) queue.putBack(thread);
        throw error;
      }
    },

    async release(lease) {
      writer.flush();
      database.assertOpen();
      const { key } = live.leased(lease);
      const row = rowKey(key);
      database.write("durable", (then) => {
        countRelease.run(...row);
        then(() => {
          live.release(key);
          queue.wait([row[0], row[1]]);
        });
      });
    },

    listen(listener) {
      queue.listen(listener);
    },

    async begun(owner, threadId, after) {
      const thread: ThreadKey = [ownerText(owner), threadId];
      lifetime.visit(...thread);
      const row = database.read(() => {
        if (after === undefined) return selectLastBegun.get(...thread);
        if (after === "") return selectBegunNext.get(...thread, 0);
        const number = selectBegun.get(...thread, after)?.begun ?? null;
        return number === null ? undefined : selectBegunNext.get(...thread, number);
      });
      return row && toRecord(row);
    },

    async requestStop(owner, threadId, runId, mode) {
      const thread: ThreadKey = [ownerText(owner), threadId];
      visit(thread);
      const row = database.write("durable", (then) => {
        const before = select.get(...thread, runId);
        if (before?.status === "pending") cancelWaiting(before, then);
        if (before?.status === "running") askToStop(before, before.stop === "cancel" ? "cancel" : mode, then);
        return select.get(...thread, runId);
      });
      return row && toRecord(row);
    },

    async steer(owner, threadId, runId, message) {
      const thread: ThreadKey = [ownerText(owner), threadId];
      visit(thread);
      return database.write("durable", () => {
        if (select.get(...thread, runId)?.status !== "running") return false;
        const left = changes.inbox([...thread, runId]);
        const isKnown = left.some(({ id }) => id === message.id) || selectMessage.get(...thread, message.id);
        if (isKnown) return true;
        if (left.length >= inboxLength) throw inboxFull(runId, inboxLength);
        insertLeft.run(...thread, runId, message.id, JSON.stringify(message));
        return true;
      });
    },

    async inbox(lease) {
      database.assertOpen();
      const { key } = live.leased(lease);
      return database.read(() => changes.inbox(rowKey(key)));
    },

    async renew(lease) {
      database.assertOpen();
      const { key, hold } = live.leased(lease);
      queue.hold([ownerText(key.owner), key.thread_id]);
      return hold.stop ? { stop: hold.stop } : {};
    },
  };

  /** What waits to be written may end a run or change a thread: it comes first. */
  function visit(thread: ThreadKey): void {
    writer.flush();
    lifetime.visit(...thread);
  }

  function knownAs(
    thread: ThreadKey,
    key: string | undefined,
  ): Extract<StartResult, { outcome: "known" }> | undefined {
    const row = key === undefined ? undefined : selectKnown.get(...thread, key);
    return row && { outcome: "known", run: toRecord(row) };
  }

  /** Whether nothing runs or waits on the thread. Throws what speaks against one more run on it. */
  function mayCome(thread: ThreadKey, { id, rewind_to }: NewRun, whenBusy: WhenBusy): boolean {
    if (select.get(...thread, id)) throw runExists(id);
    const ahead = changes.ahead(...thread);
    if (ahead === undefined) return true;
    if (whenBusy === "reject" || rewind_to !== undefined) throw threadBusy(thread[1], ahead);
    const { count } = countWaiting.get(...thread) ?? { count: 0 };
    if (count >= queueRoom(queueLength, whenBusy)) throw queueFull(thread[1], queueLength);
    return false;
  }

  function append(thread: ThreadKey, run: NewRun, whenBusy: string): RunRow {
    const { id, agent, metadata, idempotency_key: key = null, resumes = null, rewind_to, request } = run;
    const texts = [NO_USAGE, metadata].map((value) => JSON.stringify(value));
    const values = [id, agent, ...texts, key, resumes, now(), JSON.stringify(request), whenBusy];
    if (rewind_to !== undefined) changes.rewind(thread, rewind_to);
    insertThread.run(...thread, now());
    const row = insertRun.get(...thread, ...values);
    if (!row) throw new Error("An insert returns its row.");
    setAgent.run(agent, ...thread);
    changes.touchThread(...thread);
    return row;
  }

  function askToStop(row: RunRow, mode: StopMode, then: Then): void {
    setStop.run(mode, row.owner, row.thread_id, row.id);
    then(() => {
      live.stop(keyOf(row), mode);
      queue.call({ call: "stop", run_id: row.id, mode });
    });
  }

  function cancelWaiting(row: RunRow, then: Then): void {
    const key = keyOf(row);
    const events = neverStarted(row.agent, claims.request(row).model, stamp(key, now()));
    record(live.open(key), row.attempt, events.map(draftOf), then);
  }
}

const FIRST_PAGE = { number: Number.MAX_SAFE_INTEGER };
