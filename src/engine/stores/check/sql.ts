// Outlines threads from the tables of SQLite and PostgreSQL, whose statements differ in a few expressions. The texts of
// messages and events never leave the database.

import { openInterrupts } from "../../../agent/core/open-interrupts.ts";
import { isSettled, type RunStatus, type ThreadStatus } from "../../../agent/core/records.ts";
import type { EventName } from "../../../protocol/event.ts";
import { ownerOf, type ThreadKey, threadOf, threadText } from "../row-keys.ts";
import {
  type CallFacts,
  type DueDocument,
  type Inspection,
  isInTurn,
  type Question,
  type RunFacts,
  type Sum,
  type ThreadFacts,
} from "./facts.ts";
import { type LogOutline, type LogRowFacts, NO_LOG, withRow } from "./log-outline.ts";
import { type MessagesOutline, NO_MESSAGES, withMessages } from "./messages-outline.ts";

/** Queries rows. `?1` is the first value. */
export type Ask = <Row>(sql: string, values?: readonly (string | number)[]) => Promise<Row[]>;

/** The differences between the two databases. */
export interface CheckDialect {
  /** Selects a page of the keys that come after an owner and an id. */
  readonly threads: string;
  /** Selects one thread with THREAD_COLUMNS. */
  readonly thread: string;
  /** The ids of the tool calls in `body` as a JSON list, or `body` itself if the database cannot parse it. */
  readonly callsOf: string;
  /** SQL for the first position of messages that are removed but not deleted yet. */
  readonly cut: string;
  /**
   * True if the numbers of a thread's messages have no gaps. PostgreSQL also uses a number for a repeated message that
   * it skips.
   */
  readonly isDense: boolean;
  /** Converts a text that a user chose to the form used in its column. */
  text(value: string): string;
  /** Converts a call id from the form used in its column. */
  callId(stored: string): string;
}

interface ThreadRow {
  readonly status: ThreadStatus;
  readonly message_count: number;
  readonly bytes: number;
  readonly updated_at: number;
  /** Undefined if the runs themselves contain this value. */
  readonly active?: string | null;
  readonly last?: number;
  readonly is_found?: boolean;
}

interface RunRow {
  readonly id: string;
  readonly number: number;
  readonly status: RunStatus;
  readonly place: number | null;
  readonly has_request: number | boolean;
  readonly has_events: number | boolean;
  readonly ended_at: number | null;
  readonly last_seq: number | null;
}

const PAGE = 100;
/** The number of rows per page when the rows are read without their texts. */
const ROWS = 1_000;
const THREAD = "owner = ?1 AND thread_id = ?2";

export function sqlThreads(
  ask: Ask,
  dialect: CheckDialect,
  { eventsMs, now }: { readonly eventsMs: number; readonly now: number },
): Pick<Inspection, "threads" | "thread"> {
  const database = { ask, dialect };
  return {
    async *threads() {
      for await (const rows of pages<{ owner: string; id: string }, ThreadKey>(
        ["", ""],
        (after) => ask(dialect.threads, [...after, PAGE]),
        ({ owner, id }) => [owner, id],
        PAGE,
      ))
        yield rows.map(({ owner, id }) => threadText([owner, id]));
    },

    async thread(name) {
      const key = threadOf(name);
      const [row] = await ask<ThreadRow>(dialect.thread, key);
      if (!row) return undefined;
      const rows = await runsOf(ask, key);
      const runs: RunFacts[] = [];
      for (const run of rows) runs.push(factsOf(run, await logOf(ask, key, run.id), now - eventsMs));
      return { ...describe(key, row, rows), runs, ...(await contentOf(database, key, runs)) };
    },
  };
}

interface InspectedDatabase {
  readonly ask: Ask;
  readonly dialect: CheckDialect;
}

function describe([owner, id]: ThreadKey, row: ThreadRow, runs: readonly RunRow[]) {
  const running = row.active ?? runs.find(({ status }) => status === "running")?.id;
  const queue = runs
    .filter(({ status, place }) => status === "pending" && place !== null)
    .sort((a, b) => Number(a.place) - Number(b.place));
  return {
    owner: ownerOf(owner),
    id,
    status: row.status,
    counted: { messages: row.message_count, bytes: row.bytes },
    active: running === undefined || row.active === null ? undefined : { run: running, last: row.last },
    queue: queue.map((run) => run.id),
    // Always true, because these are indexes of the same tables.
    isListed: true,
    isFound: { runs: row.is_found ?? true, calls: true },
    updatedAt: row.updated_at,
  };
}

async function contentOf(
  database: InspectedDatabase,
  key: ThreadKey,
  runs: readonly RunFacts[],
): Promise<Pick<ThreadFacts, "messages" | "calls" | "inbox" | "questions">> {
  const left = await database.ask<{ run_id: string }>(
    `SELECT DISTINCT run_id FROM inbox WHERE ${THREAD}`,
    key,
  );
  return {
    messages: await messagesOf(database, key),
    calls: await callsOf(database, key),
    inbox: left.map(({ run_id }) => run_id),
    questions: await questionsOf(database, key, runs),
  };
}

async function runsOf(ask: Ask, key: ThreadKey): Promise<RunRow[]> {
  const found: RunRow[] = [];
  for await (const rows of pages<RunRow>(
    0,
    (after) =>
      ask(
        `SELECT id, number, status, place, request IS NOT NULL AS has_request, has_events, ended_at, last_seq
        FROM runs WHERE ${THREAD} AND number > ?3 ORDER BY number LIMIT ?4`,
        [...key, after, ROWS],
      ),
    ({ number }) => number,
    ROWS,
  ))
    found.push(...rows);
  return found;
}

/** `expired` is a time. Runs that ended at or before this time no longer have events. */
function factsOf(run: RunRow, log: LogOutline, expired: number): RunFacts {
  const { id, status, has_request, has_events, ended_at, last_seq } = run;
  const isKept = ended_at === null || ended_at > expired;
  return {
    id,
    status,
    hasRequest: Boolean(has_request),
    last: isSettled(status) ? (last_seq ?? 0) : undefined,
    keepsLog: Boolean(has_events) && isKept,
    log,
  };
}

async function logOf(ask: Ask, key: ThreadKey, run: string): Promise<LogOutline> {
  let log = NO_LOG;
  for await (const rows of pages<{ last_seq: number; epoch: number; event: EventName; entries: number }>(
    0,
    (after) =>
      ask(
        `SELECT last_seq, epoch, event, 1 + length(body) - length(replace(body, ?5, '')) AS entries
        FROM events WHERE ${THREAD} AND run_id = ?3 AND last_seq > ?4 ORDER BY last_seq LIMIT ?6`,
        [...key, run, after, "\n", ROWS],
      ),
    ({ last_seq }) => last_seq,
    ROWS,
  ))
    log = rows.map(({ last_seq, ...row }): LogRowFacts => ({ last: last_seq, ...row })).reduce(withRow, log);
  return log;
}

async function messagesOf({ ask, dialect }: InspectedDatabase, key: ThreadKey): Promise<MessagesOutline> {
  let messages = NO_MESSAGES;
  for await (const rows of pages<{ position: number; bytes: number; calls: string | null }>(
    0,
    (after) =>
      ask(
        `SELECT position, octet_length(body) AS bytes, ${dialect.callsOf} AS calls FROM messages
        WHERE ${THREAD} AND position > ?3 AND position < ${dialect.cut} ORDER BY position LIMIT ?4`,
        [...key, after, ROWS],
      ),
    ({ position }) => position,
    ROWS,
  ))
    messages = withMessages(
      messages,
      rows.map(({ position, bytes, calls }) => ({
        position,
        bytes,
        calls: calls === null ? [] : callIdsIn(JSON.parse(calls) as CallsOfRow),
      })),
    );
  return dialect.isDense ? messages : { ...messages, hole: undefined };
}

async function callsOf({ ask, dialect }: InspectedDatabase, key: ThreadKey): Promise<CallFacts[]> {
  const rows = await ask<Pick<CallFacts, "id" | "run" | "state"> & { has_reply: number | boolean }>(
    `SELECT call_id AS id, run_id AS run, state, reply IS NOT NULL AS has_reply FROM deferred_calls WHERE ${THREAD}`,
    key,
  );
  return rows.map(({ id, has_reply, ...call }) => ({
    ...call,
    id: dialect.callId(id),
    hasReply: Boolean(has_reply),
  }));
}

async function questionsOf(
  { ask, dialect }: InspectedDatabase,
  key: ThreadKey,
  runs: readonly RunFacts[],
): Promise<Question[]> {
  const [slot] = await ask<{ value: string }>(`SELECT value FROM state WHERE ${THREAD} AND key = ?3`, [
    ...key,
    dialect.text("interrupts"),
  ]);
  if (!slot) return [];
  return questionsIn(JSON.parse(slot.value), runs, async (run) => {
    const rows = await ask<{ body: string }>(
      `SELECT body FROM events WHERE ${THREAD} AND run_id = ?3 AND event = 'on_interrupt'`,
      [...key, run],
    );
    return rows.map(({ body }) => body);
  });
}

/** Returns the open interrupts from the state. `askedIn` contains the texts of the run's events that ask questions. */
export async function questionsIn(
  slot: unknown,
  runs: readonly RunFacts[],
  askedIn: (run: string) => Promise<readonly string[]>,
): Promise<Question[]> {
  const complete = new Set(runs.flatMap(({ id, log }) => (log.first === 1 ? [id] : [])));
  const questions: Question[] = [];
  for (const { id, run_id: run } of openInterrupts(new Map([["interrupts", slot]]))) {
    if (!complete.has(run)) {
      questions.push({ id, run, wasAsked: undefined });
      continue;
    }
    const ids = (await askedIn(run)).map((text) => (JSON.parse(text) as { data: { id: string } }).data.id);
    questions.push({ id, run, wasAsked: ids.includes(id) });
  }
  return questions;
}

type CallsOfRow = readonly string[] | { readonly tool_calls?: readonly { readonly id: string }[] };

const callIdsIn = (calls: CallsOfRow): readonly string[] =>
  "length" in calls ? calls : (calls.tool_calls ?? []).map(({ id }) => id);

/** Yields pages of up to `size` rows, each starting after the last row of the previous page. */
async function* pages<Row, Cursor = number>(
  start: Cursor,
  read: (after: Cursor) => Promise<Row[]>,
  placeOf: (row: Row) => Cursor,
  size: number,
): AsyncGenerator<Row[], void, void> {
  for (let after = start; ; ) {
    const rows = await read(after);
    if (rows.length > 0) yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < size) return;
    after = placeOf(last);
  }
}

/** `now` is the time of the database's clock. */
export async function* sqlDue(
  ask: Ask,
  { time, now }: { readonly time: number; readonly now: number },
): AsyncGenerator<DueDocument[], void, void> {
  type Row = Pick<DueDocument, "collection" | "key" | "due"> & { readonly at: number | null };
  for await (const rows of pages<Row, [number, string, string]>(
    [Number.MIN_SAFE_INTEGER, "", ""],
    (after) =>
      ask(
        `SELECT documents.collection AS collection, key, due, at FROM documents
        LEFT JOIN document_turns AS turn ON turn.collection = documents.collection
        WHERE due IS NOT NULL AND (due, documents.collection, key) > (?1, ?2, ?3)
        ORDER BY due, documents.collection, key LIMIT ?4`,
        [...after, ROWS],
      ),
    ({ due, collection, key }) => [due, collection, key],
    ROWS,
  )) {
    const documents: DueDocument[] = [];
    for (const { at, ...row } of rows)
      documents.push({ ...row, exists: true, isFound: await isFound(row, at) });
    yield documents.filter((each) => each.due <= time || !each.isFound);
  }

  /**
   * A tenant's turn covers the tenant's own documents and the entries that represent its users' documents. Other
   * collections have no turns.
   */
  async function isFound(
    { collection, key, due }: Pick<Row, "collection" | "key" | "due">,
    at: number | null,
  ) {
    const [kind, tenant, user, ...more] = JSON.parse(collection) as (string | null)[];
    if (tenant === undefined || more.length > 0) return true;
    if (user === undefined || user === null) return isInTurn(due, at, now);
    const entry = [JSON.stringify([kind, tenant, null]), JSON.stringify([user, JSON.parse(key)])];
    const found = await ask("SELECT 1 AS n FROM documents WHERE collection = ?1 AND key = ?2", entry);
    return found.length > 0;
  }
}

export async function* sqlSums(ask: Ask): AsyncGenerator<Sum[], void, void> {
  for await (const rows of pages<Sum, string>(
    "",
    (after) =>
      ask(
        `SELECT name, sum(recorded) AS recorded, sum(counted) AS counted FROM (
          SELECT name, bytes AS recorded, 0 AS counted FROM stored_sums
          UNION ALL SELECT tenant, 0, bytes FROM stored UNION ALL SELECT owner, 0, bytes FROM stored) AS every
        WHERE name > ?1 GROUP BY name HAVING sum(recorded) <> sum(counted) ORDER BY name LIMIT ?2`,
        [after, PAGE],
      ),
    ({ name }) => name,
    PAGE,
  ))
    yield rows.map(({ name, recorded, counted }) => ({
      name,
      recorded: Number(recorded),
      counted: Number(counted),
    }));
}
