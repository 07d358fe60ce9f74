// Documents in a table. When a thread is deleted, the database deletes its documents too.

import {
  type Document,
  type Documents,
  type ListedDocument,
  TRIMMED,
} from "../../../agent/core/documents.ts";
import { dueOf, type ListPosition, listedPage, placeOf, refusalOf, roomFor } from "../document-rules.ts";
import { noSuchThread } from "../errors.ts";
import { type CollectionKey, collectionKey } from "../row-keys.ts";
import type { SqlDialect } from "./dialect.ts";
import { sqlSchedule } from "./document-schedule.ts";
import { documentTexts } from "./document-texts.ts";
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

/** A position before all others, because no date is later. */
const NEWEST: ListPosition = { time: 8.64e15, key: "" };
/** Sorts after all characters that occur in list keys. */
const LAST_CHAR = "\x7f";

/** `at` reads and changes a collection. If the collection belongs to a thread, this counts as a use of the thread. */
export function sqlDocuments(
  dialect: SqlDialect,
  at: (key: CollectionKey) => Omit<Executor, "write">,
): Documents {
  const sql = documentTexts(dialect);
  const schedule = sqlSchedule(dialect, (kind) => at({ name: `turns of ${kind}` }));

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
      const old = (age: number): Statement<Key> => ({
        sql: sql.oldest,
        values: [key.name, executor.clock(), Math.ceil(age), TRIMMED],
      });
      const over = (most: number): Statement<Key> => ({ sql: sql.over, values: [key.name, TRIMMED, most] });
      const asked = [isBound(ms) ? old(ms) : undefined, isBound(count) ? over(count) : undefined] as const;
      return executor.change(asked, (found) => {
        const keys = [...new Set(found.flat().map((row) => row.key))].slice(0, TRIMMED);
        if (keys.length === 0) return { writes: [], result: 0 };
        const deletions = schedule.deletionsOf(collection, keys.map(keyIn));
        return { writes: [...deletions, { sql: sql.remove, values: [key.name, keys] }], result: keys.length };
      });
    },

    pick: schedule.pick,

    async write(collection, writes, { version, ...bounds }) {
      const key = collectionKey(collection);
      const { name, thread } = key;
      const timed = writes.map((write) => ({ ...write, due: dueOf(write) }));
      const rows = timed.map((write) => ({ ...write, key: JSON.stringify(write.key) }));
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
        const puts = rows.flatMap(({ key: each, body, due }) => {
          const [owner, id] = thread ?? [null, null];
          return body === undefined
            ? []
            : { sql: sql.put, values: [name, each, version, body, due, owner, id, clock] };
        });
        const removals = gone.length > 0 ? [{ sql: sql.remove, values: [name, gone] }] : [];
        return [...schedule.writesOf(collection, timed, { version, clock }), ...removals, ...puts];
      }
    },
  };
}

/** Infinity means no limit, and no database accepts it. */
const isBound = (most: number | undefined): most is number =>
  most !== undefined && most !== Number.POSITIVE_INFINITY;

// Not validated, because only `write` fills this column.
const keyIn = (text: string) => JSON.parse(text) as string;

function documentOf({ key, version, body }: Row): Document {
  return { key: keyIn(key), version, body };
}
