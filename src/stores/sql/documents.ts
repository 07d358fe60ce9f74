// Documents in a table. Those of a thread are deleted with it.

import type { Document, Documents } from "../../core/documents.ts";
import { refusalOf, roomFor } from "../document-rules.ts";
import { noSuchThread } from "../errors.ts";
import { type CollectionKey, collectionKey } from "../row-keys.ts";
import type { Dialect } from "./dialect.ts";
import type { Executor, Statement } from "./executor.ts";

interface Row {
  readonly key: string;
  readonly version: string;
  readonly body: string;
}

interface FoundRow {
  readonly now: number;
  readonly is_there: boolean | number;
}

interface Count {
  readonly n: number;
}

/** `at` reads and changes a collection, whose thread, if it has one, is used with that. */
export function sqlDocuments(dialect: Dialect, at: (key: CollectionKey) => Executor): Documents {
  const sql = textsOf(dialect);

  return {
    async read(collection, keys) {
      const { name, thread = [] } = collectionKey(collection);
      const executor = at(collectionKey(collection));
      const rows = await executor.read<FoundRow & (Row | { readonly key: null })>({
        sql: thread.length > 0 ? sql.findOfThread : sql.find,
        values: [name, keys.map((key) => JSON.stringify(key)), executor.clock(), ...thread],
      });
      const found = new Map(rows.flatMap((row) => (row.key === null ? [] : [[row.key, documentOf(row)]])));
      return {
        found: keys.map((key) => found.get(JSON.stringify(key))),
        exists: Boolean(rows[0]?.is_there),
        now: rows[0]?.now ?? 0,
      };
    },

    async list(collection) {
      const key = collectionKey(collection);
      const rows = await at(key).read<Row>({ sql: sql.list, values: [key.name] });
      return rows.map(documentOf);
    },

    async due(collection, limit, aheadMs) {
      const key = collectionKey(collection);
      const executor = at(key);
      const values = [key.name, executor.clock(), limit, aheadMs ?? null];
      return (await executor.read<Row>({ sql: sql.due, values })).map(documentOf);
    },

    async write(collection, writes, { version, ...bounds }) {
      const key = collectionKey(collection);
      const { name, thread } = key;
      const rows = writes.map((write) => ({ ...write, key: JSON.stringify(write.key) }));
      const keys = rows.map((row) => row.key);
      const room = roomFor(rows, bounds);
      const threads: Statement | undefined = thread && { sql: sql.keepThread, values: thread };
      const versions: Statement<Row> = { sql: sql.versions, values: [name, keys] };
      const count: Statement<Count> | undefined =
        room.documents === undefined ? undefined : { sql: sql.count, values: [name] };
      const bytes: Statement<Count> | undefined =
        room.otherBytes === undefined ? undefined : { sql: sql.otherBytes, values: [name, keys] };
      return at(key).change([threads, versions, count, bytes], ([found, stored, [documents], [others]]) => {
        const seen = new Map(stored.map((row) => [row.key, row.version]));
        const refused = refusalOf(rows, bounds, {
          exists: thread === undefined || found.length > 0,
          versions: keys.map((each) => seen.get(each)),
          documents: () => documents?.n ?? 0,
          otherBytes: () => others?.n ?? 0,
        });
        if (refused === "none") throw noSuchThread(thread?.[1] ?? "");
        if (refused) return { writes: [], result: refused };
        return { writes: written(), result: "written" };
      });

      function written(): Statement[] {
        const gone = rows.filter(({ body }) => body === undefined).map((row) => row.key);
        const puts = rows.flatMap(({ key: each, body, due = null }) => {
          const [owner, id] = thread ?? [null, null];
          return body === undefined
            ? []
            : { sql: sql.put, values: [name, each, version, body, due, owner, id] };
        });
        return gone.length > 0 ? [{ sql: sql.remove, values: [name, gone] }, ...puts] : puts;
      }
    },
  };
}

function documentOf({ key, version, body }: Row): Document {
  // Only `write` fills this column.
  return { key: JSON.parse(key) as string, version, body };
}

function textsOf({ among, time, isWhole, keepsRow }: Dialect) {
  const DOCUMENT = "key, version, body";
  const IN_COLLECTION = "FROM documents WHERE collection = $1";
  const THREAD = (owner: number) =>
    `SELECT 1 FROM threads WHERE owner = $${owner} AND id = $${owner + 1} AND ${isWhole}`;
  /** One row at least. */
  const find = (exists: string) => `
    SELECT now, is_there, ${DOCUMENT} FROM (SELECT ${time(3)} AS now, ${exists} AS is_there) AS seen
    LEFT JOIN documents ON collection = $1 AND ${among("key", 2)}`;
  const dueAt = (comparison: string, name: string) =>
    `SELECT * FROM (SELECT ${DOCUMENT} ${IN_COLLECTION} AND due ${comparison} ORDER BY due, key LIMIT $3) AS ${name}`;

  return {
    find: find("true"),
    findOfThread: find(`EXISTS (${THREAD(4)})`),
    list: `SELECT ${DOCUMENT} ${IN_COLLECTION}`,
    due: `${dueAt(`<= ${time(2)}`, "due")} UNION ALL ${dueAt(`> ${time(2)} + CAST($4 AS bigint)`, "ahead")} LIMIT $3`,
    keepThread: `${THREAD(1)} ${keepsRow}`,
    versions: `SELECT key, version ${IN_COLLECTION} AND ${among("key", 2)}`,
    count: `SELECT count(*) AS n ${IN_COLLECTION}`,
    otherBytes: `SELECT CAST(coalesce(sum(octet_length(body)), 0) AS bigint) AS n ${IN_COLLECTION} AND NOT ${among("key", 2)}`,
    put: `
      INSERT INTO documents (collection, key, version, body, due, owner, thread_id) VALUES ($1, $2, $3, $4, $5, $6, $7)
      ON CONFLICT (collection, key) DO UPDATE SET version = excluded.version, body = excluded.body, due = excluded.due`,
    remove: `DELETE ${IN_COLLECTION} AND ${among("key", 2)}`,
  };
}
