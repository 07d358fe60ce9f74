// Threads, runs and deferred calls as the file has them.

import type { SQLInputValue } from "node:sqlite";
import type { DeferredCall } from "../../core/deferred-calls.ts";
import type { Message } from "../../core/message.ts";
import type { RunRecord } from "../../core/records.ts";
import { isTurnSpent, sharedTurn } from "../../lib/async.ts";
import { noSuchMessage } from "../errors.ts";
import type { Kernel } from "../kernel.ts";
import { badCursor, decodePosition, encodePosition, fitting, type Position, pageOf } from "../page.ts";
import { ownerText, rowKey, type ThreadKey, threadText } from "../row-keys.ts";
import {
  ASKS_ITSELF,
  CALL_COLUMNS,
  type CallRow,
  callOf,
  type RepliedRow,
  RUN_COLUMNS,
  type RunRow,
  repliedOf,
  type ThreadRow,
  toRecord,
  toThread,
} from "../rows.ts";
import type { CallHead } from "../thread-head.ts";
import type { StoreContext } from "./context.ts";
import { hasEnded } from "./lifetime.ts";

const THREAD_COLUMNS =
  "id, agent, title, metadata, parent, forked_from, status, message_count, created_at, updated_at";
const THREAD = "owner = ? AND thread_id = ?";

export interface Reads extends Pick<Kernel<ThreadKey>, "threads" | "deferredCalls"> {
  readonly runs: Omit<Kernel<ThreadKey>["runs"], "waiting">;
  known(thread: ThreadKey, key: string): RunRecord | undefined;
  call(thread: ThreadKey, id: string): DeferredCall | undefined;
  /** All of a thread, without their replies. */
  calls(thread: ThreadKey): CallHead[];
}

export function sqliteReads(context: StoreContext): Reads {
  const { database, changes, live, queue, lifetime, flights } = context;
  const selectThread = database.query<ThreadRow>(
    `SELECT ${THREAD_COLUMNS} FROM threads WHERE owner = ? AND id = ? AND staged IS NULL`,
  );
  const listOf = (which: string) => {
    const listed = `
      owner = ?1 AND staged IS NULL AND (updated_at, id) < (?2, ?3) AND ${which} ORDER BY updated_at DESC, id DESC`;
    return {
      search: database.query<ThreadRow>(`
        SELECT ${THREAD_COLUMNS} FROM (SELECT * FROM threads WHERE ${listed} LIMIT ${SEARCHED_ROWS})
        WHERE (?5 IS NULL OR agent = ?5) AND (?6 IS NULL OR status = ?6) AND (?7 IS NULL OR instr(title_folded, ?7) > 0)
          AND NOT ${hasEnded(9, 10)} LIMIT ?8`),
      lastSearched: database.query<{ updated_at: number; id: string }>(
        `SELECT updated_at, id FROM threads WHERE ${listed} LIMIT 1 OFFSET ${SEARCHED_ROWS - 1}`,
      ),
    };
  };
  const countInterrupted = database.query<{ count: number }>(`
    SELECT count(*) AS count FROM threads
    WHERE outcome = 'interrupted' AND status <> 'busy' AND staged IS NULL AND ${ASKS_ITSELF} AND NOT ${hasEnded(1, 2)}`);
  // Two, because each is served by an index of its own.
  const all = listOf("?4 IS NULL");
  const below = listOf("parent_thread IS ?4");
  const selectBytes = database.query<{ bytes: number }>(
    "SELECT bytes FROM threads WHERE owner = ? AND id = ? AND staged IS NULL",
  );
  const positionOf = database.query<{ position: number }>(
    `SELECT position FROM messages WHERE ${THREAD} AND id = ?`,
  );
  const selectSizes = database.query<{ position: number; bytes: number }>(
    `SELECT position, octet_length(body) AS bytes FROM messages WHERE ${THREAD} AND position > ? ORDER BY position LIMIT ?`,
  );
  const selectMessages = database.query<{ body: string }>(
    `SELECT body FROM messages WHERE ${THREAD} AND position > ? AND position <= ? ORDER BY position`,
  );
  const selectMessage = database.query<{ body: string }>(
    `SELECT body FROM messages WHERE ${THREAD} AND id = ?`,
  );
  const selectLast = database.query<{ body: string }>(
    `SELECT body FROM messages WHERE ${THREAD} ORDER BY position DESC LIMIT 1`,
  );
  const selectState = database.query<{ key: string; value: string }>(
    `SELECT key, value FROM state WHERE ${THREAD}`,
  );

  const runWhere = (condition: string) =>
    database.query<RunRow>(`SELECT ${RUN_COLUMNS} FROM runs WHERE ${THREAD} AND ${condition}`);
  const selectRun = runWhere("id = ?");
  const selectKnown = runWhere("idempotency_key = ?");
  const selectActive = runWhere("status = 'running'");
  const selectRuns = runWhere("number < ? ORDER BY number DESC LIMIT ?");
  const selectLastBegun = runWhere("begun IS NOT NULL ORDER BY begun DESC LIMIT 1");
  const selectBegunNext = runWhere("begun > ? ORDER BY begun LIMIT 1");
  const numbersOf = database.query<{ number: number; begun: number | null }>(
    `SELECT number, begun FROM runs WHERE ${THREAD} AND id = ?`,
  );

  const selectCall = database.query<RepliedRow>(
    `SELECT ${CALL_COLUMNS}, reply FROM deferred_calls WHERE ${THREAD} AND call_id = ?`,
  );
  const selectCalls = database.query<CallRow>(`SELECT ${CALL_COLUMNS} FROM deferred_calls WHERE ${THREAD}`);

  const reads: Reads = {
    known(thread, key) {
      const row = selectKnown.get(...thread, key);
      return row && toRecord(row);
    },

    call(thread, id) {
      const row = selectCall.get(...thread, id);
      return row && repliedOf(row);
    },

    calls: (thread) => selectCalls.all(...thread).map(callOf),

    runs: {
      async get(owner, threadId, runId) {
        return visited([ownerText(owner), threadId], (thread) => recordOf(selectRun.get(...thread, runId)));
      },

      async known(owner, threadId, key) {
        return visited([ownerText(owner), threadId], (thread) => reads.known(thread, key));
      },

      async list(owner, threadId, { limit, cursor }) {
        return visited([ownerText(owner), threadId], (thread) => {
          const end = cursor === undefined ? FIRST_PAGE : numbersOf.get(...thread, cursor);
          if (!end) throw badCursor(cursor ?? "");
          const page = pageOf(selectRuns.all(...thread, end.number, limit + 1), limit, (row) => row.id);
          return { ...page, items: page.items.map(toRecord) };
        });
      },

      async active(owner, threadId) {
        return visited([ownerText(owner), threadId], (thread) => recordOf(selectActive.get(...thread)));
      },

      async begun(owner, threadId, after) {
        return visited([ownerText(owner), threadId], (thread) => {
          if (after === undefined) return recordOf(selectLastBegun.get(...thread));
          const number = after === "" ? 0 : (numbersOf.get(...thread, after)?.begun ?? undefined);
          return number === undefined ? undefined : recordOf(selectBegunNext.get(...thread, number));
        });
      },

      async place(owner, threadId, runId) {
        return visited(
          [ownerText(owner), threadId],
          (thread) => numbersOf.get(...thread, runId)?.begun ?? undefined,
        );
      },

      subscribe: (listener) => queue.subscribe(listener),

      async inbox(lease) {
        database.assertOpen();
        const run = live.leased(lease);
        if (!run.mayHaveLeft) return [];
        const left = database.read(() => changes.inbox(rowKey(run.key)));
        run.mayHaveLeft = left.length > 0;
        return left;
      },

      async renew(lease) {
        database.assertOpen();
        const { key, hold } = live.leased(lease);
        queue.hold([ownerText(key.owner), key.thread_id]);
        return hold.stop ? { stop: hold.stop } : {};
      },
    },

    threads: {
      async interrupted() {
        return database.read(() => countInterrupted.get(...lifetime.ended())?.count ?? 0);
      },

      async get(owner, id) {
        return visited([ownerText(owner), id], (thread) => {
          const row = selectThread.get(...thread);
          return row && toThread(row);
        });
      },

      async list(owner, { limit, cursor, agent, status, q, parent, children }) {
        const { search, lastSearched } = children && parent === undefined ? all : below;
        const filter = [agent ?? null, status ?? null, q?.toLowerCase() ?? null];
        const rows: ThreadRow[] = [];
        let start: Position | undefined = cursor === undefined ? NEWEST : decodePosition(cursor);
        while (start) {
          const from: SQLInputValue[] = [ownerText(owner), start.updatedAt, start.id, parent ?? null];
          const missing = limit + 1 - rows.length;
          rows.push(...database.read(() => search.all(...from, ...filter, missing, ...lifetime.ended())));
          if (rows.length > limit) break;
          const last = database.read(() => lastSearched.get(...from));
          start = last && placeOf(last);
          if (isTurnSpent()) await sharedTurn(owner.tenant);
        }
        await flights.all();
        database.assertOpen();
        const page = pageOf(rows, limit, (row) => encodePosition(placeOf(row)));
        return { ...page, items: page.items.map(toThread) };
      },

      async bytes(owner, id) {
        return visited([ownerText(owner), id], (thread) => selectBytes.get(...thread)?.bytes ?? 0);
      },

      async measured(owner, id) {
        return visited([ownerText(owner), id], (thread) => {
          const row = selectThread.get(...thread);
          return row && { thread: toThread(row), bytes: selectBytes.get(...thread)?.bytes ?? 0 };
        });
      },

      async message(owner, id, messageId) {
        const row = await visited([ownerText(owner), id], (thread) =>
          messageId === undefined ? selectLast.get(...thread) : selectMessage.get(...thread, messageId),
        );
        // Only messages are put into this column.
        return row && (JSON.parse(row.body) as Message);
      },

      async messagePage(owner, id, { after, limit = MAX_ROWS, bytes }) {
        return visited([ownerText(owner), id], (thread) => {
          const start = after === undefined ? undefined : positionOf.get(...thread, after);
          if (after !== undefined && !start) throw noSuchMessage(after);
          const from = start?.position ?? 0;
          const most = Math.min(limit, MAX_ROWS);
          // The sizes lie in the rows' headers, so no long text is read for them.
          const sizes = selectSizes.all(...thread, from, most + 1);
          const taken = fitting(sizes.slice(0, most), bytes);
          const last = sizes[taken - 1];
          const rows = last ? selectMessages.all(...thread, from, last.position) : [];
          return { texts: rows.map(({ body }) => body), isLast: taken === sizes.length };
        });
      },

      async state(owner, id) {
        const rows = await visited([ownerText(owner), id], (thread) => selectState.all(...thread));
        return Object.fromEntries(rows.map(({ key, value }) => [key, JSON.parse(value)]));
      },
    },

    deferredCalls: {
      async get({ owner, thread_id, call_id }) {
        return visited([ownerText(owner), thread_id], (thread) => reads.call(thread, call_id));
      },
    },
  };
  return reads;

  /** Reads in the turn of the event loop in which nothing of the thread is left to be deleted. What is read is on disk. */
  async function visited<T>(thread: ThreadKey, read: (thread: ThreadKey) => T): Promise<T> {
    for (let rest = lifetime.visit(...thread); rest; rest = lifetime.visit(...thread)) await rest;
    const result = database.read(() => read(thread));
    const flight = flights.of(threadText(thread));
    if (flight) await flight;
    database.assertOpen();
    return result;
  }
}

/** So many rows of an owner's list are searched in one go. In between, others get their turn. */
const SEARCHED_ROWS = 1000;

/** Of a page of messages. */
const MAX_ROWS = 1000;

const FIRST_PAGE = { number: Number.MAX_SAFE_INTEGER };
/** Before every position there is: no date is later. */
const NEWEST = { updatedAt: 8.64e15, id: "" };

const placeOf = ({ updated_at, id }: Pick<ThreadRow, "updated_at" | "id">): Position => ({
  updatedAt: updated_at,
  id,
});

const recordOf = (row: RunRow | undefined) => row && toRecord(row);
