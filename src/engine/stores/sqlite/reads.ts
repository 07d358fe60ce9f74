// Reads threads, runs and deferred calls from the file.

import type { SQLInputValue } from "node:sqlite";
import type { DeferredCall } from "../../../agent/core/deferred-calls.ts";
import type { RunRecord } from "../../../agent/core/records.ts";
import { isTickSpent, sharedTick } from "../../../lib/ticks.ts";
import { noSuchMessage } from "../errors.ts";
import type { Kernel } from "../kernel.ts";
import { decodePosition, encodePosition, fitting, type Position, pageOf } from "../page.ts";
import { ownerText, rowKey, type ThreadKey, threadText } from "../row-keys.ts";
import {
  ASKS_ITSELF,
  CALL_COLUMNS,
  type CallRow,
  callOf,
  type RecordRow,
  type RepliedRow,
  repliedOf,
  type ThreadRow,
  toRecord,
  toThread,
} from "../rows.ts";
import { SQLITE } from "../sql/dialect.ts";
import { readingTexts, sqlReads, threadColumns } from "../sql/reads.ts";
import type { CallHead } from "../thread-head.ts";
import type { StoreContext } from "./context.ts";
import { tickExecutor } from "./executor.ts";
import { hasEnded } from "./retention.ts";

const THREAD = "owner = ? AND thread_id = ?";

export interface Reads extends Pick<Kernel<ThreadKey>, "threads" | "deferredCalls"> {
  readonly runs: Omit<Kernel<ThreadKey>["runs"], "waiting">;
  known(thread: ThreadKey, key: string): RunRecord | undefined;
  call(thread: ThreadKey, id: string): DeferredCall | undefined;
  /** Returns all calls of a thread, without their replies. */
  calls(thread: ThreadKey): CallHead[];
}

export function sqliteReads(context: StoreContext): Reads {
  const { database, changes, live, queue, retention, flights } = context;
  const executor = tickExecutor(database);
  const texts = readingTexts(SQLITE);
  const shared = sqlReads(SQLITE, (thread) => ({
    read: (statement) => visited(thread, () => executor.read(statement)),
  }));
  const listOf = (which: string) => {
    const listed = `
      owner = ?1 AND staged IS NULL AND (updated_at, id) < (?2, ?3) AND ${which} ORDER BY updated_at DESC, id DESC`;
    return {
      search: database.query<ThreadRow>(`
        SELECT ${threadColumns(SQLITE)} FROM (SELECT * FROM threads WHERE ${listed} LIMIT ${SEARCHED_ROWS})
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
  // Two statements, because each uses a different index.
  const all = listOf("?4 IS NULL");
  const below = listOf("parent_thread IS ?4");
  const positionOf = database.query<{ position: number }>(
    `SELECT position FROM messages WHERE ${THREAD} AND id = ?`,
  );
  const selectSizes = database.query<{ position: number; bytes: number }>(
    `SELECT position, octet_length(body) AS bytes FROM messages WHERE ${THREAD} AND position > ? ORDER BY position LIMIT ?`,
  );
  const selectMessages = database.query<{ body: string }>(
    `SELECT body FROM messages WHERE ${THREAD} AND position > ? AND position <= ? ORDER BY position`,
  );
  const selectCalls = database.query<CallRow>(`SELECT ${CALL_COLUMNS} FROM deferred_calls WHERE ${THREAD}`);

  const reads: Reads = {
    known([owner, id], key) {
      const [row] = executor.ask<RecordRow>({ sql: texts.known, values: [owner, id, key] });
      return row && toRecord(row);
    },

    call([owner, id], call) {
      const [row] = executor.ask<RepliedRow>({ sql: texts.call, values: [owner, id, call] });
      return row && repliedOf(row);
    },

    calls: (thread) => selectCalls.all(...thread).map(callOf),

    runs: {
      ...shared.runs,
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
      ...shared.threads,

      async interrupted() {
        return database.read(() => countInterrupted.get(...retention.ended())?.count ?? 0);
      },

      async list(owner, { limit, cursor, agent, status, q, parent, children }) {
        const { search, lastSearched } = children && parent === undefined ? all : below;
        const filter = [agent ?? null, status ?? null, SQLITE.folded(q)];
        const rows: ThreadRow[] = [];
        let start: Position | undefined = cursor === undefined ? NEWEST : decodePosition(cursor);
        while (start) {
          const from: SQLInputValue[] = [ownerText(owner), start.updatedAt, start.id, parent ?? null];
          const missing = limit + 1 - rows.length;
          rows.push(...database.read(() => search.all(...from, ...filter, missing, ...retention.ended())));
          if (rows.length > limit) break;
          const last = database.read(() => lastSearched.get(...from));
          start = last && placeOf(last);
          if (isTickSpent()) await sharedTick(owner.tenant);
        }
        await flights.all();
        database.assertOpen();
        const page = pageOf(rows, limit, (row) => encodePosition(placeOf(row)));
        return { ...page, items: page.items.map(toThread) };
      },

      async messagePage(owner, id, { after, limit = MAX_ROWS, bytes }) {
        return visited([ownerText(owner), id], (thread) => {
          const start = after === undefined ? undefined : positionOf.get(...thread, after);
          if (after !== undefined && !start) throw noSuchMessage(after);
          const from = start?.position ?? 0;
          const most = Math.min(limit, MAX_ROWS);
          // No long texts are read, because the row headers contain the sizes.
          const sizes = selectSizes.all(...thread, from, most + 1);
          const taken = fitting(sizes.slice(0, most), bytes);
          const last = sizes[taken - 1];
          const rows = last ? selectMessages.all(...thread, from, last.position) : [];
          return { texts: rows.map(({ body }) => body), isLast: taken === sizes.length };
        });
      },
    },

    deferredCalls: shared.deferredCalls,
  };
  return reads;

  /**
   * Reads in a tick of the event loop, after all removed data of the thread has been deleted. All returned data is on
   * disk.
   */
  async function visited<T>(thread: ThreadKey, read: (thread: ThreadKey) => T): Promise<T> {
    for (let rest = retention.visit(...thread); rest; rest = retention.visit(...thread)) await rest;
    const result = database.read(() => read(thread));
    const flight = flights.of(threadText(thread));
    if (flight) await flight;
    database.assertOpen();
    return result;
  }
}

/** The number of rows of an owner's list to search per tick of the event loop. */
const SEARCHED_ROWS = 1000;

/** The maximum number of messages in a page. */
const MAX_ROWS = 1000;

/** A position before all others, because no date is later. */
const NEWEST = { updatedAt: 8.64e15, id: "" };

const placeOf = ({ updated_at, id }: Pick<ThreadRow, "updated_at" | "id">): Position => ({
  updatedAt: updated_at,
  id,
});
