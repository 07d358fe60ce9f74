// Reads one thread, its runs and its deferred calls. Each store implements its own lists of threads and pages of
// messages.

import type { RunRecord, Thread } from "../../../agent/core/records.ts";
import { storedMessage } from "../../../agent/core/stored-json.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { Kernel } from "../kernel.ts";
import { badCursor, pageOf } from "../page.ts";
import { ownerText, type ThreadKey } from "../row-keys.ts";
import {
  CALL_COLUMNS,
  RECORD_COLUMNS,
  type RecordRow,
  type RepliedRow,
  repliedOf,
  type ThreadRow,
  toRecord,
  toThread,
} from "../rows.ts";
import type { SqlDialect } from "./dialect.ts";
import type { Executor, Value } from "./executor.ts";

interface SqlReads {
  readonly runs: Pick<Kernel<ThreadKey>["runs"], "get" | "known" | "list" | "active" | "begun" | "place">;
  readonly threads: Pick<Kernel<ThreadKey>["threads"], "get" | "bytes" | "measured" | "message" | "state">;
  readonly deferredCalls: Kernel<ThreadKey>["deferredCalls"];
}

type MeasuredRow = ThreadRow & { readonly bytes: number };

/** `at` reads a thread, which counts as a use of the thread. */
export function sqlReads(dialect: SqlDialect, at: (thread: ThreadKey) => Pick<Executor, "read">): SqlReads {
  const sql = readingTexts(dialect);
  const { chosen, plain } = dialect;

  return {
    runs: {
      get: (owner, thread, run) => runOf(sql.run, owner, thread, run),
      known: (owner, thread, key) => runOf(sql.known, owner, thread, chosen(key)),
      active: (owner, thread) => runOf(sql.active, owner, thread),

      async begun(owner, thread, after) {
        if (after === undefined) return runOf(sql.lastBegun, owner, thread);
        if (after === "") return runOf(sql.firstBegun, owner, thread);
        return runOf(sql.begunAfter, owner, thread, after);
      },

      async list(owner, thread, { limit, cursor }) {
        const [place] =
          cursor === undefined ? [NEWEST] : await rowsOf<RunPosition>(sql.place, owner, thread, cursor);
        if (!place) throw badCursor(cursor ?? "");
        const rows = await rowsOf<RecordRow>(sql.runs, owner, thread, place.number, limit + 1);
        const page = pageOf(rows, limit, (row) => row.id);
        return { ...page, items: page.items.map(toRecord) };
      },

      async place(owner, thread, run) {
        const [row] = await rowsOf<RunPosition>(sql.place, owner, thread, run);
        return row?.begun ?? undefined;
      },
    },

    threads: {
      get: async (owner, id) => (await measured(owner, id))?.thread,
      bytes: async (owner, id) => (await measured(owner, id))?.bytes ?? 0,
      measured,

      async message(owner, thread, id) {
        const [row] = await (id === undefined
          ? rowsOf<{ body: string }>(sql.lastMessage, owner, thread)
          : rowsOf<{ body: string }>(sql.message, owner, thread, chosen(id)));
        // This column contains only messages.
        return row && storedMessage(row.body);
      },

      async state(owner, thread) {
        const rows = await rowsOf<{ key: string; value: string }>(sql.state, owner, thread);
        return Object.fromEntries(rows.map(({ key, value }) => [plain(key), JSON.parse(value)]));
      },
    },

    deferredCalls: {
      async get({ owner, thread_id, call_id }) {
        const [row] = await rowsOf<RepliedRow>(sql.call, owner, thread_id, chosen(call_id));
        return row && repliedOf({ ...row, call_id });
      },
    },
  };

  function rowsOf<Row>(text: string, owner: Owner, thread: string, ...values: Value[]): Promise<Row[]> {
    const key = [ownerText(owner), thread] as const;
    return at(key).read<Row>({ sql: text, values: [...key, ...values] });
  }

  async function runOf(
    text: string,
    owner: Owner,
    thread: string,
    ...values: Value[]
  ): Promise<RunRecord | undefined> {
    const [row] = await rowsOf<RecordRow>(text, owner, thread, ...values);
    return row && toRecord(row);
  }

  async function measured(owner: Owner, id: string): Promise<{ thread: Thread; bytes: number } | undefined> {
    const [row] = await rowsOf<MeasuredRow>(sql.thread, owner, id);
    if (!row) return undefined;
    return { thread: threadOf(dialect, row), bytes: row.bytes };
  }
}

interface RunPosition {
  readonly number: number;
  readonly begun?: number | null;
}

const NEWEST: RunPosition = { number: Number.MAX_SAFE_INTEGER };

/** The title may be stored as JSON in the table. */
export const threadOf = ({ plain }: SqlDialect, row: ThreadRow): Thread =>
  toThread({ ...row, title: row.title === null ? null : plain(row.title) });

/** The columns of a `ThreadRow`. */
export const threadColumns = ({ status }: SqlDialect) =>
  `id, agent, title, metadata, parent, forked_from, ${status} AS status, message_count, created_at, updated_at`;

/** The first two values of each statement are the thread's key. */
export function readingTexts(dialect: SqlDialect) {
  const THREAD = "owner = $1 AND thread_id = $2";
  const runWhere = (which: string) => `SELECT ${RECORD_COLUMNS} FROM runs WHERE ${THREAD} AND ${which}`;

  return {
    thread: `SELECT ${threadColumns(dialect)}, bytes FROM threads WHERE owner = $1 AND id = $2 AND ${dialect.isWhole}`,
    run: runWhere("id = $3"),
    known: runWhere("idempotency_key = $3"),
    active: runWhere("status = 'running'"),
    runs: runWhere("number < $3 ORDER BY number DESC LIMIT $4"),
    lastBegun: runWhere("begun IS NOT NULL ORDER BY begun DESC LIMIT 1"),
    firstBegun: runWhere("begun > 0 ORDER BY begun LIMIT 1"),
    begunAfter: runWhere(
      `begun > (SELECT begun FROM runs WHERE ${THREAD} AND id = $3) ORDER BY begun LIMIT 1`,
    ),
    place: `SELECT number, begun FROM runs WHERE ${THREAD} AND id = $3`,
    message: `SELECT body FROM messages WHERE ${THREAD} AND id = $3`,
    lastMessage: `SELECT body FROM messages WHERE ${THREAD} ORDER BY position DESC LIMIT 1`,
    state: `SELECT key, value FROM state WHERE ${THREAD}`,
    call: `SELECT ${CALL_COLUMNS}, reply FROM deferred_calls WHERE ${THREAD} AND call_id = $3`,
  };
}
