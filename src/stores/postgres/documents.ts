// Documents in a table. Those of a thread go with it.

import type { Collection, Document, Documents } from "../../core/documents.ts";
import { refusalOf, roomFor, threadIdOf } from "../document-rules.ts";
import { noSuchThread } from "../errors.ts";
import { type CollectionKey, collectionKey } from "../row-keys.ts";
import { type Database, momentOf, timeOf } from "./database.ts";
import type { Lifetime } from "./lifetime.ts";

interface Row {
  readonly key: string;
  readonly version: string;
  readonly body: string;
}

const COLUMNS = "key, version, body";

/** Without `lifetime` no collection is a thread's. */
export function postgresDocuments(database: Database, lifetime?: Pick<Lifetime, "visit">): Documents {
  return {
    async read(collection, keys) {
      const { name, thread } = await visited(collection);
      const [found] = await database.query<{ now: number; is_there: boolean; found: Row[] }>(
        `SELECT ${timeOf(5)} AS now, $3::text IS NULL OR EXISTS (SELECT 1 FROM threads WHERE owner = $3 AND id = $4) AS is_there,
          (SELECT coalesce(json_agg(found), '[]') FROM (
            SELECT ${COLUMNS} FROM documents WHERE collection = $1 AND key = ANY ($2)) AS found) AS found`,
        [name, keys.map((key) => JSON.stringify(key)), ...(thread ?? [null, null]), database.clock()],
      );
      const byKey = new Map(found?.found.map((row) => [row.key, documentOf(row)]));
      return {
        found: keys.map((key) => byKey.get(JSON.stringify(key))),
        exists: found?.is_there ?? false,
        now: found?.now ?? 0,
      };
    },

    async list(collection) {
      const { name } = await visited(collection);
      const rows = await database.query<Row>(`SELECT ${COLUMNS} FROM documents WHERE collection = $1`, [
        name,
      ]);
      return rows.map(documentOf);
    },

    async due(collection, limit, aheadMs) {
      const { name } = await visited(collection);
      const range = (comparison: string) =>
        `(SELECT ${COLUMNS} FROM documents WHERE collection = $1 AND due ${comparison} ORDER BY due, key LIMIT $3)`;
      const rows = await database.query<Row>(
        `${range(`<= ${momentOf(2)}`)} UNION ALL ${range(`> ${momentOf(2)} + $4::bigint`)} LIMIT $3`,
        [name, database.clock(), limit, aheadMs ?? null],
      );
      return rows.map(documentOf);
    },

    async write(collection, writes, { version, ...bounds }) {
      const { name, thread } = await visited(collection);
      const rows = writes.map((write) => ({ ...write, key: JSON.stringify(write.key) }));
      return database.transaction(["documents", name], async (tx) => {
        const keys = rows.map(({ key }) => key);
        // The thread cannot be deleted before this is written.
        const there = thread
          ? tx.rows("SELECT 1 FROM threads WHERE owner = $1 AND id = $2 FOR KEY SHARE", thread)
          : undefined;
        const stored = tx.rows<Row>(
          "SELECT key, version FROM documents WHERE collection = $1 AND key = ANY ($2)",
          [name, keys],
        );
        const room = roomFor(rows, bounds);
        const counted =
          room.documents === undefined
            ? undefined
            : tx.rows<{ n: number }>("SELECT count(*) AS n FROM documents WHERE collection = $1", [name]);
        const others =
          room.otherBytes === undefined
            ? undefined
            : tx.rows<{ bytes: number }>(
                "SELECT coalesce(sum(octet_length(body)), 0)::float8 AS bytes FROM documents WHERE collection = $1 AND key <> ALL ($2)",
                [name, keys],
              );
        const isThere = (await there)?.length !== 0;
        const versions = new Map((await stored).map((row) => [row.key, row.version]));
        const documents = Number((await counted)?.[0]?.n ?? 0);
        const otherBytes = (await others)?.[0]?.bytes ?? 0;
        const refused = refusalOf(rows, bounds, {
          exists: isThere,
          versions: keys.map((key) => versions.get(key)),
          documents: () => documents,
          otherBytes: () => otherBytes,
        });
        if (refused === "none") throw noSuchThread(threadIdOf(collection));
        if (refused) return refused;
        const gone = rows.filter(({ body }) => body === undefined).map(({ key }) => key);
        if (gone.length > 0)
          tx.write("DELETE FROM documents WHERE collection = $1 AND key = ANY ($2)", [name, gone]);
        const kept = rows.filter(({ body }) => body !== undefined);
        if (kept.length > 0)
          tx.write(
            `INSERT INTO documents (collection, key, version, body, due, owner, thread_id)
            SELECT $1, key, $2, body, due, $3, $4 FROM unnest($5::text[], $6::text[], $7::float8[]) AS new (key, body, due)
            ON CONFLICT (collection, key) DO UPDATE SET version = $2, body = excluded.body, due = excluded.due`,
            [
              name,
              version,
              ...(thread ?? [null, null]),
              kept.map(({ key }) => key),
              kept.map(({ body }) => body),
              kept.map(({ due }) => due ?? null),
            ],
          );
        return "written";
      });
    },
  };

  async function visited(collection: Collection): Promise<CollectionKey> {
    const key = collectionKey(collection);
    if (key.thread) await lifetime?.visit(key.thread);
    return key;
  }
}

function documentOf({ key, version, body }: Row): Document {
  // Only `write` fills this column.
  return { key: JSON.parse(key) as string, version, body };
}
