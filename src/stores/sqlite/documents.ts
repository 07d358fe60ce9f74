// Documents in a table. In the file of threads those of a thread go with it.

import type { Collection, Document, Documents } from "../../core/documents.ts";
import { type Refusal, refusalOf } from "../document-rules.ts";
import { noSuchThread } from "../errors.ts";
import { type CollectionKey, collectionKey, type ThreadKey } from "../row-keys.ts";
import type { Database } from "./database.ts";
import { Flights } from "./flights.ts";
import type { SmallFile } from "./small-file.ts";

interface Row {
  readonly key: string;
  readonly version: string;
  readonly body: string;
}

/** Where threads lie: a thread is used, and whether it exists. */
export interface Threads {
  /** What to wait for before the thread is visited again, if anything. */
  visit(owner: string, threadId: string): Promise<void> | undefined;
  exists(thread: ThreadKey): boolean;
}

const NO_THREADS: Threads = { visit: () => undefined, exists: () => false };

/** A file without `flushed` has on disk what it has written. */
export function sqliteDocuments(
  file: Pick<SmallFile, "query" | "read" | "write"> & Partial<Pick<Database, "flushed" | "assertOpen">>,
  now: () => number,
  threads: Threads = NO_THREADS,
): Documents {
  const COLUMNS = "key, version, body";
  const select = file.query<Row>(`SELECT ${COLUMNS} FROM documents WHERE collection = ? AND key = ?`);
  const selectAll = file.query<Row>(`SELECT ${COLUMNS} FROM documents WHERE collection = ?`);
  const dueIn = (comparison: string) =>
    file.query<Row>(
      `SELECT ${COLUMNS} FROM documents WHERE collection = ? AND due ${comparison} ? ORDER BY due, key LIMIT ?`,
    );
  const [selectDue, selectLate] = [dueIn("<="), dueIn(">")];
  const count = file.query<{ n: number }>("SELECT count(*) AS n FROM documents WHERE collection = ?");
  const size = file.query<{ bytes: number | null }>(
    "SELECT sum(octet_length(body)) AS bytes FROM documents WHERE collection = ?",
  );
  const upsert = file.query(`
    INSERT INTO documents (collection, key, version, body, due, owner, thread_id) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET version = excluded.version, body = excluded.body, due = excluded.due`);
  const remove = file.query("DELETE FROM documents WHERE collection = ? AND key = ?");

  /** By the name of the collection. */
  const flights = new Flights();

  return {
    async read(collection, keys) {
      return visited(collection, ({ name, thread }) =>
        file.read(() => ({
          found: keys.map((key) => documentOf(select.get(name, JSON.stringify(key)))),
          exists: thread === undefined || threads.exists(thread),
          now: now(),
        })),
      );
    },

    async list(collection) {
      return visited(collection, ({ name }) =>
        file.read(() => selectAll.all(name).flatMap((row) => documentOf(row) ?? [])),
      );
    },

    async due(collection, limit, aheadMs) {
      return visited(collection, ({ name }) =>
        file.read(() => {
          const rows = selectDue.all(name, now(), limit);
          if (aheadMs !== undefined) rows.push(...selectLate.all(name, now() + aheadMs, limit - rows.length));
          return rows.flatMap((row) => documentOf(row) ?? []);
        }),
      );
    },

    async write(collection, writes, guards) {
      const { result, flushed } = await visited(collection, (key) => {
        const result: Refusal | "written" = file.write(() => writeAll(key, writes, guards));
        const flushed = result === "written" ? file.flushed?.() : undefined;
        if (flushed) flights.add(key.name, flushed);
        return { result, flushed };
      });
      await flushed;
      return result;
    },
  };

  /** Within a transaction. */
  function writeAll(
    { name, thread }: CollectionKey,
    writes: Parameters<Documents["write"]>[1],
    { version, ...bounds }: Parameters<Documents["write"]>[2],
  ) {
    const rows = writes.map((write) => ({ ...write, key: JSON.stringify(write.key) }));
    const stored = rows.map(({ key }) => select.get(name, key));
    const refused = refusalOf(rows, bounds, {
      exists: thread === undefined || threads.exists(thread),
      versions: stored.map((row) => row?.version),
      documents: () => count.get(name)?.n ?? 0,
      otherBytes: () => (size.get(name)?.bytes ?? 0) - bytesOf(stored),
    });
    if (refused === "none") throw noSuchThread(thread?.[1] ?? "");
    if (refused) return refused;
    for (const { key, body, due = null } of rows) {
      if (body === undefined) remove.run(name, key);
      else upsert.run(name, key, version, body, due, ...(thread ?? [null, null]));
    }
    return "written";
  }

  /** Works in the turn of the event loop in which nothing of the thread is left to be deleted. */
  async function visited<T>(collection: Collection, work: (key: CollectionKey) => T): Promise<T> {
    const key = collectionKey(collection);
    const visit = () => key.thread && threads.visit(...key.thread);
    for (let rest = visit(); rest; rest = visit()) await rest;
    const flight = flights.of(key.name);
    try {
      return work(key);
    } finally {
      // The answer may tell of a document that another caller has just written.
      if (flight) await flight;
      file.assertOpen?.();
    }
  }
}

const bytesOf = (rows: readonly (Row | undefined)[]) =>
  rows.reduce((sum, row) => sum + Buffer.byteLength(row?.body ?? ""), 0);

function documentOf(row: Row | undefined): Document | undefined {
  // Only `write` fills this column.
  return row && { ...row, key: JSON.parse(row.key) as string };
}
