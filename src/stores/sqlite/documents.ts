// Documents in a table. In the file of threads those of a thread go with it.

import type { Collection, Document, Documents } from "../../core/documents.ts";
import { noSuchThread } from "../errors.ts";
import { type CollectionKey, collectionKey, type ThreadKey } from "../row-keys.ts";
import type { SmallFile } from "./small-file.ts";

interface Row {
  readonly key: string;
  readonly version: string;
  readonly body: string;
}

/** Where threads lie: a thread is used, and whether it exists. */
export interface Threads {
  visit(owner: string, threadId: string): void;
  exists(thread: ThreadKey): boolean;
}

const NO_THREADS: Threads = { visit: () => {}, exists: () => false };

export function sqliteDocuments(
  file: Pick<SmallFile, "query" | "read" | "write">,
  now: () => number,
  threads: Threads = NO_THREADS,
): Documents {
  const COLUMNS = "key, version, body";
  const select = file.query<Row>(`SELECT ${COLUMNS} FROM documents WHERE collection = ? AND key = ?`);
  const selectAll = file.query<Row>(`SELECT ${COLUMNS} FROM documents WHERE collection = ?`);
  const selectDue = file.query<Row>(
    `SELECT ${COLUMNS} FROM documents WHERE collection = ? AND due <= ? ORDER BY due, key LIMIT ?`,
  );
  const count = file.query<{ n: number }>("SELECT count(*) AS n FROM documents WHERE collection = ?");
  const size = file.query<{ bytes: number | null }>(
    "SELECT sum(octet_length(body)) AS bytes FROM documents WHERE collection = ?",
  );
  const upsert = file.query(`
    INSERT INTO documents (collection, key, version, body, due, owner, thread_id) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET version = excluded.version, body = excluded.body, due = excluded.due`);
  const remove = file.query("DELETE FROM documents WHERE collection = ? AND key = ?");

  return {
    async read(collection, keys) {
      const { name, thread } = visit(collection);
      return file.read(() => ({
        found: keys.map((key) => documentOf(select.get(name, JSON.stringify(key)))),
        exists: thread === undefined || threads.exists(thread),
        now: now(),
      }));
    },

    async list(collection) {
      const { name } = visit(collection);
      return file.read(() => selectAll.all(name).flatMap((row) => documentOf(row) ?? []));
    },

    async due(collection, limit) {
      const { name } = visit(collection);
      return file.read(() => selectDue.all(name, now(), limit).flatMap((row) => documentOf(row) ?? []));
    },

    async write(collection, writes, { version, limit = Number.POSITIVE_INFINITY, bytes }) {
      const { name, thread } = visit(collection);
      return file.write("durable", () => {
        if (thread && !threads.exists(thread)) throw noSuchThread(thread[1]);
        const rows = writes.map((write) => ({ ...write, key: JSON.stringify(write.key) }));
        const stored = rows.map(({ key }) => select.get(name, key));
        if (rows.some(({ seen }, at) => stored[at]?.version !== seen)) return "changed";
        const added = rows.filter(({ seen, body }) => seen === undefined && body !== undefined).length;
        if (added > 0 && (count.get(name)?.n ?? 0) + added > limit) return "full";
        if (bytes !== undefined) {
          const before = (size.get(name)?.bytes ?? 0) - bytesOf(stored);
          if (before + bytesOf(rows) > bytes) return "large";
        }
        for (const { key, body, due = null } of rows) {
          if (body === undefined) remove.run(name, key);
          else upsert.run(name, key, version, body, due, ...(thread ?? [null, null]));
        }
        return "written";
      });
    },
  };

  function visit(collection: Collection): CollectionKey {
    const key = collectionKey(collection);
    if (key.thread) threads.visit(...key.thread);
    return key;
  }
}

const bytesOf = (rows: readonly ({ readonly body: string | undefined } | undefined)[]) =>
  rows.reduce((sum, row) => sum + Buffer.byteLength(row?.body ?? ""), 0);

function documentOf(row: Row | undefined): Document | undefined {
  // Only `write` fills this column.
  return row && { ...row, key: JSON.parse(row.key) as string };
}
