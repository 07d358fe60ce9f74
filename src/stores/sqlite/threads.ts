// Threads in the file.

import type { Owner } from "../../core/ids.ts";
import type { Message } from "../../core/message.ts";
import type { Thread, ThreadStatus } from "../../core/records.ts";
import type { ThreadStore } from "../../core/stores.ts";
import { decodePosition, encodePosition, pageOf } from "../page.ts";
import { noSuchMessage, threadBusy, threadExists } from "../refusals.ts";
import type { Engine } from "./engine.ts";
import { ownerText, type ThreadKey } from "./keys.ts";
import { hasEnded } from "./lifetime.ts";

interface ThreadRow {
  readonly id: string;
  readonly agent: string | null;
  readonly title: string | null;
  readonly metadata: string;
  readonly parent: string | null;
  readonly status: ThreadStatus;
  readonly message_count: number;
  readonly created_at: number;
  readonly updated_at: number;
}

const COLUMNS = "id, agent, title, metadata, parent, status, message_count, created_at, updated_at";
const IN_THREAD = "owner = ? AND thread_id = ?";

export function sqliteThreads({ database, changes, writer, lifetime, limits: { now } }: Engine): ThreadStore {
  const insert = database.query(`
    INSERT INTO threads (owner, id, agent, title, title_folded, metadata, parent, parent_thread, status, outcome, message_count, created_at, updated_at, used_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'idle', 'idle', 0, ?9, ?9, ?9) ON CONFLICT DO NOTHING`);
  const select = database.query<ThreadRow>(`SELECT ${COLUMNS} FROM threads WHERE owner = ? AND id = ?`);
  const pageOfThreads = (below: string) =>
    database.query<ThreadRow>(`
      SELECT ${COLUMNS} FROM threads
      WHERE owner = ?1 AND (updated_at, id) < (?2, ?3)
        AND (?4 IS NULL OR agent = ?4) AND (?5 IS NULL OR status = ?5) AND (?6 IS NULL OR instr(title_folded, ?6) > 0)
        AND NOT ${hasEnded(8, 9)} ${below} ORDER BY updated_at DESC, id DESC LIMIT ?7`);
  // Two, because each is served by an index of its own.
  const selectAny = pageOfThreads("");
  const selectBelow = pageOfThreads("AND parent_thread IS ?10");
  const change = database.query(`
    UPDATE threads SET title = coalesce(?1, title), title_folded = coalesce(?2, title_folded),
      metadata = coalesce(?3, metadata) WHERE owner = ?4 AND id = ?5`);
  const remove = database.query("DELETE FROM threads WHERE owner = ? AND id = ?");
  const positionOf = database.query<{ position: number }>(
    `SELECT position FROM messages WHERE ${IN_THREAD} AND id = ?`,
  );
  const selectMessages = database.query<{ body: string }>(
    `SELECT body FROM messages WHERE ${IN_THREAD} AND position > ? ORDER BY position LIMIT ?`,
  );
  const selectState = database.query<{ key: string; value: string }>(
    `SELECT key, value FROM state WHERE ${IN_THREAD}`,
  );
  const deleteSlot = database.query(`DELETE FROM state WHERE ${IN_THREAD} AND key = ?`);
  const clearings = ["messages", "state", "deferred_calls", "thread_items"].map((table) =>
    database.query(`DELETE FROM ${table} WHERE ${IN_THREAD}`),
  );
  const reset = database.query(
    "UPDATE threads SET message_count = 0, outcome = 'idle' WHERE owner = ? AND id = ?",
  );

  return {
    async create(owner, { id, agent, title, metadata, parent, ...begin }) {
      const thread = [ownerText(owner), id] as const;
      lifetime.visit(...thread);
      const texts = [agent ?? null, title ?? null, folded(title), JSON.stringify(metadata)];
      const above = parent ? [JSON.stringify(parent), parent.thread_id] : [null, null];
      const row = database.write("durable", () => {
        if (insert.run(...thread, ...texts, ...above, now()) === 0) return undefined;
        changes.fill(thread, begin);
        return select.get(...thread);
      });
      if (!row) throw threadExists(id);
      return toThread(row);
    },

    async get(owner, id) {
      lifetime.visit(ownerText(owner), id);
      const row = database.read(() => select.get(ownerText(owner), id));
      return row && toThread(row);
    },

    async list(owner, { limit, cursor, agent, status, q, parent, children }) {
      const { updatedAt, id } = cursor === undefined ? NEWEST : decodePosition(cursor);
      const filter = [agent ?? null, status ?? null, folded(q)];
      const values = [ownerText(owner), updatedAt, id, ...filter, limit + 1, ...lifetime.ended()];
      const rows = database.read(() =>
        children && parent === undefined
          ? selectAny.all(...values)
          : selectBelow.all(...values, parent ?? null),
      );
      const page = pageOf(rows, limit, (row) => encodePosition({ updatedAt: row.updated_at, id: row.id }));
      return { ...page, items: page.items.map(toThread) };
    },

    async update(owner, id, { title, metadata, forget }) {
      const thread = [ownerText(owner), id] as const;
      lifetime.visit(...thread);
      const texts = [title ?? null, folded(title), metadata ? JSON.stringify(metadata) : null];
      writer.flush();
      const row = database.write("durable", () => {
        if (forget) assertFree(thread);
        for (const key of forget ?? []) deleteSlot.run(...thread, key);
        change.run(...texts, ...thread);
        changes.touchThread(...thread);
        return select.get(...thread);
      });
      return row && toThread(row);
    },

    async delete(owner, id) {
      lifetime.visit(ownerText(owner), id);
      return whenFree(owner, id, () => remove.run(ownerText(owner), id));
    },

    async messages(owner, id, { after, limit = -1 } = {}) {
      lifetime.visit(ownerText(owner), id);
      return database.read(() => {
        const start = after === undefined ? undefined : positionOf.get(ownerText(owner), id, after);
        if (after !== undefined && !start) throw noSuchMessage(after);
        const rows = selectMessages.all(ownerText(owner), id, start?.position ?? 0, limit);
        // Only messages are put into this column.
        return rows.map(({ body }) => JSON.parse(body) as Message);
      });
    },

    async clear(owner, id) {
      lifetime.visit(ownerText(owner), id);
      return whenFree(owner, id, () => {
        for (const clearing of clearings) clearing.run(ownerText(owner), id);
        const cleared = reset.run(ownerText(owner), id);
        changes.touchThread(ownerText(owner), id);
        return cleared;
      });
    },

    async state(owner, id) {
      lifetime.visit(ownerText(owner), id);
      const rows = database.read(() => selectState.all(ownerText(owner), id));
      return Object.fromEntries(rows.map(({ key, value }) => [key, JSON.parse(value)]));
    },
  };

  /** Whether `work` changed the thread. Throws `thread_busy`. */
  function whenFree(owner: Owner, id: string, work: () => number): boolean {
    writer.flush();
    return database.write("durable", () => {
      assertFree([ownerText(owner), id]);
      return work() > 0;
    });
  }

  function assertFree(thread: ThreadKey): void {
    const run = changes.ahead(...thread);
    if (run !== undefined) throw threadBusy(thread[1], run);
  }
}

/** Before every position there is: no date is later. */
const NEWEST = { updatedAt: 8.64e15, id: "" };

/** The database folds ASCII only. */
const folded = (text: string | undefined) => text?.toLowerCase() ?? null;

function toThread({ agent, title, metadata, parent, created_at, updated_at, ...row }: ThreadRow): Thread {
  return {
    ...row,
    ...(agent === null ? {} : { agent }),
    ...(title === null ? {} : { title }),
    metadata: JSON.parse(metadata),
    ...(parent === null ? {} : { parent: JSON.parse(parent) }),
    created_at: new Date(created_at).toISOString(),
    updated_at: new Date(updated_at).toISOString(),
  };
}
