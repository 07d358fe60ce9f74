// Documents in a table. Those of a thread are deleted with it.

import {
  type Document,
  type Documents,
  type ListedDocument,
  MAX_PICKED,
  TRIMMED,
} from "../../core/documents.ts";
import {
  inTurn,
  listedPage,
  type Place,
  placeOf,
  refusalOf,
  roomFor,
  tenantOfTurns,
} from "../document-rules.ts";
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

type Key = Pick<Row, "key">;
type ListedRow = Row & Pick<ListedDocument, "created_at" | "updated_at">;

/** A document that is due, of a tenant whose turn it is; without a key the tenant has none. */
interface TurnRow {
  readonly collection: string;
  readonly key: string | null;
  readonly version: string | null;
}

/** Before every position there is: no date is later. */
const NEWEST: Place = { time: 8.64e15, key: "" };
/** Behind all characters that the keys of lists are made of. */
const LAST_CHAR = "\x7f";

/** `at` reads and changes a collection, whose thread, if it has one, is used with that. */
export function sqlDocuments(
  dialect: Dialect,
  at: (key: CollectionKey) => Omit<Executor, "write">,
): Documents {
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

    async page(collection, query) {
      const key = collectionKey(collection);
      const { order, prefix = "", limit } = query;
      const place = placeOf(query);
      const { time, key: after } = place ?? NEWEST;
      const values =
        order === "key"
          ? [key.name, place ? JSON.stringify(after) : `"${prefix}`, `"${prefix}${LAST_CHAR}`, limit + 1]
          : [key.name, time, place ? JSON.stringify(after) : "", limit + 1];
      const rows = await at(key).read<ListedRow>({ sql: sql.pageBy[order], values });
      return listedPage(
        rows.map(({ created_at, updated_at, ...row }) => ({ ...documentOf(row), created_at, updated_at })),
        query,
      );
    },

    async size(collection) {
      const key = collectionKey(collection);
      const [found] = await at(key).read<{ documents: number; bytes: number }>({
        sql: sql.size,
        values: [key.name],
      });
      return found ?? { documents: 0, bytes: 0 };
    },

    async trim(collection, { ms, count }) {
      const key = collectionKey(collection);
      const executor = at(key);
      const values = [key.name, executor.clock(), ms ?? null, TRIMMED];
      const old: Statement<Key> = { sql: sql.oldest, values };
      const over: Statement<Key> = { sql: sql.over, values: [key.name, TRIMMED, count ?? 0] };
      const asked = [ms === undefined ? undefined : old, count === undefined ? undefined : over] as const;
      return executor.change(asked, (found) => {
        const keys = [...new Set(found.flat().map((row) => row.key))].slice(0, TRIMMED);
        const writes = keys.length > 0 ? [{ sql: sql.remove, values: [key.name, keys] }] : [];
        return { writes, result: keys.length };
      });
    },

    async pick(kind, { limit, holdMs, aheadMs }) {
      const executor = at({ name: `turns of ${kind}` });
      const clock = executor.clock();
      const most = Math.min(limit, MAX_PICKED);
      const waiting: Statement<TurnRow> = { sql: sql.waiting, values: [kind, clock, most, aheadMs ?? null] };
      return executor.change([waiting], ([rows]) => {
        const tenants = Map.groupBy(rows, ({ collection }) => collection);
        const due = [...tenants.values()].map((of) =>
          of.flatMap(({ key, version, ...turn }) =>
            key === null || version === null ? [] : [{ ...turn, key, version }],
          ),
        );
        const picked = inTurn(due, most);
        const holds = picked.map(({ collection, key, version }) => ({
          sql: sql.hold,
          values: [collection, key, version, clock, holdMs],
        }));
        const turns = [...tenants.keys()].flatMap((collection) => [
          { sql: sql.endTurn, values: [collection] },
          { sql: sql.nextTurn, values: [collection, clock] },
        ]);
        const result = picked.map(({ collection, key, version }) => ({
          collection: { kind, tenant: tenantIn(collection) },
          key: JSON.parse(key) as string,
          version,
        }));
        return { writes: [...holds, ...turns], result };
      });
    },

    async write(collection, writes, { version, ...bounds }) {
      const key = collectionKey(collection);
      const { name, thread } = key;
      const rows = writes.map((write) => ({ ...write, key: JSON.stringify(write.key) }));
      const keys = rows.map((row) => row.key);
      const executor = at(key);
      const clock = executor.clock();
      const room = roomFor(rows, bounds);
      const threads: Statement | undefined = thread && { sql: sql.keepThread, values: thread };
      const versions: Statement<Row> = { sql: sql.versions, values: [name, keys] };
      const count: Statement<Count> | undefined =
        room.documents === undefined ? undefined : { sql: sql.count, values: [name] };
      const bytes: Statement<Count> | undefined =
        room.otherBytes === undefined ? undefined : { sql: sql.otherBytes, values: [name, keys] };
      return executor.change([threads, versions, count, bytes], ([found, stored, [documents], [others]]) => {
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
            : { sql: sql.put, values: [name, each, version, body, due, owner, id, clock] };
        });
        const removals = gone.length > 0 ? [{ sql: sql.remove, values: [name, gone] }] : [];
        return [...removals, ...puts, ...turnsOf()];
      }

      /** A process that picks due documents looks for the tenant's when the first of these is due. */
      function turnsOf(): Statement[] {
        const times = rows.flatMap(({ body, due }) =>
          body !== undefined && typeof due === "number" ? [due] : [],
        );
        if (tenantOfTurns(collection) === undefined || times.length === 0) return [];
        return [{ sql: sql.addTurn, values: [name, collection.kind, Math.min(...times), clock] }];
      }
    },
  };
}

/** Of the name of a tenant's collection: see `collectionKey`. */
const tenantIn = (collection: string) => (JSON.parse(collection) as [kind: string, tenant: string])[1];

function documentOf({ key, version, body }: Row): Document {
  // Only `write` fills this column.
  return { key: JSON.parse(key) as string, version, body };
}

function textsOf({ among, time, isWhole, keepsRow }: Dialect) {
  const DOCUMENT = "key, version, body";
  const LISTED = `${DOCUMENT}, created_at, updated_at`;
  const IN_COLLECTION = "FROM documents WHERE collection = $1";
  const THREAD = (owner: number) =>
    `SELECT 1 FROM threads WHERE owner = $${owner} AND id = $${owner + 1} AND ${isWhole}`;
  const newestBy = (column: string) =>
    `SELECT ${LISTED} ${IN_COLLECTION} AND (${column}, key) < ($2, $3) ORDER BY ${column} DESC, key DESC LIMIT $4`;
  const isDue = (column: string) => `(${column} <= now OR ${column} > now + CAST($4 AS bigint))`;
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
    size: `SELECT count(*) AS documents, CAST(coalesce(sum(octet_length(body)), 0) AS bigint) AS bytes ${IN_COLLECTION}`,
    otherBytes: `SELECT CAST(coalesce(sum(octet_length(body)), 0) AS bigint) AS n ${IN_COLLECTION} AND NOT ${among("key", 2)}`,
    put: `
      INSERT INTO documents (collection, key, version, body, due, owner, thread_id, created_at, updated_at)
      VALUES ($1, $2, $3, $4, $5, $6, $7, ${time(8)}, ${time(8)})
      ON CONFLICT (collection, key) DO UPDATE SET
        version = excluded.version, body = excluded.body, due = excluded.due, updated_at = excluded.updated_at`,
    pageBy: {
      key: `SELECT ${LISTED} ${IN_COLLECTION} AND key > $2 AND key < $3 ORDER BY key LIMIT $4`,
      created: newestBy("created_at"),
      updated: newestBy("updated_at"),
    },
    oldest: `SELECT key ${IN_COLLECTION} AND created_at < ${time(2)} - CAST($3 AS bigint) ORDER BY created_at, key LIMIT $4`,
    over: `SELECT key ${IN_COLLECTION} ORDER BY created_at DESC, key DESC LIMIT $2 OFFSET $3`,
    waiting: `
      SELECT turn.collection AS collection, key, version FROM (
        SELECT collection, at, now FROM (SELECT ${time(2)} AS now) AS clock
        JOIN document_turns ON kind = $1 AND ${isDue("at")} ORDER BY at, collection LIMIT $3) AS turn
      LEFT JOIN documents ON documents.collection = turn.collection AND documents.key IN (
        SELECT each.key FROM documents AS each WHERE each.collection = turn.collection AND ${isDue("each.due")}
        ORDER BY each.due, each.key LIMIT $3)
      ORDER BY turn.at, turn.collection, due, key`,
    hold: `UPDATE documents SET due = ${time(4)} + CAST($5 AS bigint) WHERE collection = $1 AND key = $2 AND version = $3`,
    addTurn: `
      INSERT INTO document_turns (collection, kind, at)
      SELECT $1, $2, CASE WHEN due > now THEN due ELSE now END
      FROM (SELECT CAST($3 AS bigint) AS due, ${time(4)} AS now) AS first WHERE true
      ON CONFLICT (collection) DO UPDATE SET at =
        CASE WHEN excluded.at < document_turns.at THEN excluded.at ELSE document_turns.at END`,
    endTurn: `
      DELETE FROM document_turns WHERE collection = $1
        AND NOT EXISTS (SELECT 1 FROM documents WHERE collection = $1 AND due IS NOT NULL)`,
    nextTurn: `
      UPDATE document_turns SET at = (
        SELECT CASE WHEN min(due) > now THEN CAST(min(due) AS bigint) ELSE now END
        FROM documents JOIN (SELECT ${time(2)} AS now) AS clock ON true WHERE collection = $1 AND due IS NOT NULL GROUP BY now)
      WHERE collection = $1`,
    remove: `DELETE ${IN_COLLECTION} AND ${among("key", 2)}`,
  };
}
