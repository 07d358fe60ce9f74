// Items in the file: those of a thread go with it, those of an agent stay.

import { type Item, type ItemStore, MAX_ITEMS, type Shelf } from "../../core/items.ts";
import { itemOrder, itemText, shelfFull } from "../item-limits.ts";
import { noSuchThread } from "../refusals.ts";
import type { Engine } from "./engine.ts";
import { ownerText } from "./keys.ts";

interface ItemRow {
  readonly key: string;
  readonly value: string;
  readonly version: number;
  readonly updated_at: number;
}

export function sqliteItems(engine: Engine): ItemStore {
  const { database, lifetime, limits } = engine;
  const ofThreads = statements(engine, "thread_items", "thread_id");
  const ofAgents = statements(engine, "agent_items", "agent");
  const selectThread = database.query("SELECT 1 FROM threads WHERE owner = ? AND id = ?");

  return {
    async get(shelf, key) {
      const { sql, place } = visit(shelf);
      const row = database.read(() => sql.select.get(...place, JSON.stringify(key)));
      return row && itemOf(row);
    },

    async list(shelf) {
      const { sql, place } = visit(shelf);
      return database
        .read(() => sql.selectAll.all(...place))
        .map(itemOf)
        .sort(itemOrder);
    },

    async put(shelf, item) {
      const { sql, place } = visit(shelf);
      const value = itemText(item);
      const key = JSON.stringify(item.key);
      const row = database.write("durable", () => {
        if (sql === ofThreads && !selectThread.get(place[0], place[1])) throw noSuchThread(place[1]);
        const before = sql.select.get(...place, key)?.version ?? 0;
        if (item.version !== undefined && item.version !== before) return undefined;
        if (before === 0 && (sql.count.get(...place)?.count ?? 0) >= MAX_ITEMS) throw shelfFull();
        return sql.upsert.get(...place, key, value, before + 1, limits.now());
      });
      return row && itemOf(row);
    },

    async delete(shelf, key) {
      const { sql, place } = visit(shelf);
      return database.write("durable", () => sql.remove.run(...place, JSON.stringify(key)) > 0);
    },
  };

  /** The statements for a shelf, and the columns that its items' keys begin with. */
  function visit({ owner, of, kind }: Shelf) {
    const text = ownerText(owner);
    if ("agent" in of) return { sql: ofAgents, place: [text, of.agent, kind] as const };
    lifetime.visit(text, of.thread);
    return { sql: ofThreads, place: [text, of.thread, kind] as const };
  }
}

function statements({ database }: Engine, table: string, whose: string) {
  const SHELF = `owner = ? AND ${whose} = ? AND kind = ?`;
  const COLUMNS = "key, value, version, updated_at";
  return {
    select: database.query<ItemRow>(`SELECT ${COLUMNS} FROM ${table} WHERE ${SHELF} AND key = ?`),
    selectAll: database.query<ItemRow>(`SELECT ${COLUMNS} FROM ${table} WHERE ${SHELF}`),
    count: database.query<{ count: number }>(`SELECT count(*) AS count FROM ${table} WHERE ${SHELF}`),
    upsert: database.query<ItemRow>(`
      INSERT INTO ${table} (owner, ${whose}, kind, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET value = excluded.value, version = excluded.version, updated_at = excluded.updated_at
      RETURNING ${COLUMNS}`),
    remove: database.query(`DELETE FROM ${table} WHERE ${SHELF} AND key = ?`),
  };
}

function itemOf({ key, value, version, updated_at }: ItemRow): Item {
  // Only `put` writes these columns.
  return {
    ...{ key: JSON.parse(key) as string, value: JSON.parse(value), version },
    updated_at: new Date(updated_at).toISOString(),
  };
}
