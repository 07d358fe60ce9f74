// Searches all threads of a user for runs and for text in messages.

import { z } from "zod";
import { AppError, hasCode } from "../../agent/core/errors.ts";
import { type Message, textOf } from "../../agent/core/message.ts";
import { isSettled, type RunRecord, Thread } from "../../agent/core/records.ts";
import { storedMessage } from "../../agent/core/stored-json.ts";
import type { Page, RunStore, Stores, ThreadQuery, ThreadStore } from "../../agent/core/stores.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { indexIn, isIn } from "../../lib/search.ts";
import { firstChars, lastChars } from "../../lib/text.ts";
import { ownTick } from "../../lib/ticks.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Interrupt } from "../../protocol/interrupt.ts";
import { isBranch } from "./branches.ts";
import { openOn } from "./start.ts";

const PAGE = 50;
/** The maximum number of threads to search for runs, most recently changed first. */
export const MAX_THREADS = 1_000;

export interface RunsQuery {
  readonly limit: number;
  readonly cursor?: string;
  readonly agent?: string;
  readonly status?: RunRecord["status"];
  /** A time in ISO 8601 and UTC. Selects runs that were accepted or ended at or after this time. */
  readonly since?: string;
}

/**
 * Lists the user's threads, without branches, most recently changed first. `since` (ISO 8601 in UTC) excludes threads
 * that last changed earlier.
 */
export async function listThreads(
  threads: Pick<ThreadStore, "list">,
  owner: Owner,
  { since = "", ...query }: ThreadQuery & { readonly since?: string },
): Promise<Page<Thread>> {
  const page = await threads.list(owner, query);
  const items = page.items.filter(({ updated_at }) => updated_at >= since);
  const shown = items.filter((thread) => !isBranch(thread));
  return items.length < page.items.length ? { items: shown } : { ...page, items: shown };
}

/**
 * Lists the runs of the user's threads, newest first, including runs of subagents. Reads the most recently changed
 * threads first, because a thread's last change is at least as recent as its newest run. Throws `invalid_request` for
 * an invalid cursor.
 */
export async function listRuns(
  { threads, runs }: Pick<Stores, "threads" | "runs">,
  owner: Owner,
  { limit, cursor, agent, status, since = "" }: RunsQuery,
): Promise<Page<RunRecord>> {
  const before = cursor === undefined ? undefined : placeAt(cursor);
  const isWanted = (run: RunRecord) =>
    (before === undefined || newestFirst(before, run) < 0) &&
    (agent === undefined || run.agent === agent) &&
    (status === undefined || run.status === status) &&
    (run.ended_at ?? run.created_at) >= since;
  let found: RunRecord[] = [];
  for await (const thread of threadsOf(threads, owner, { since, status: threadStatusOf(status) })) {
    const last = found[limit];
    if (last && thread.updated_at < last.created_at) break;
    const more = await firstRuns(runs, owner, { thread: thread.id, isWanted, count: limit + 1 });
    if (more.length > 0) found = [...found, ...more].sort(newestFirst).slice(0, limit + 1);
  }
  const items = found.slice(0, limit);
  const end = items.at(-1);
  return found.length > limit && end ? { items, next_cursor: cursorOf(end) } : { items };
}

/** Returns the status of threads that have a run with this status. Undefined means any status. */
const threadStatusOf = (status: RunRecord["status"] | undefined) =>
  status !== undefined && !isSettled(status) ? ("busy" as const) : undefined;

async function* threadsOf(
  threads: ThreadStore,
  owner: Owner,
  filter: { readonly since: string; readonly status: Thread["status"] | undefined },
): AsyncGenerator<Thread, void, void> {
  let cursor: string | undefined;
  for (let read = 0; read < MAX_THREADS; read += PAGE) {
    const query = { limit: PAGE, children: true as const, ...omitUndefined({ cursor, ...filter }) };
    const page = await listThreads(threads, owner, query);
    yield* page.items;
    cursor = page.next_cursor;
    if (cursor === undefined) return;
  }
}

interface RunSearch {
  readonly thread: string;
  readonly isWanted: (run: RunRecord) => boolean;
  readonly count: number;
}

async function firstRuns(runs: RunStore, owner: Owner, { thread, isWanted, count }: RunSearch) {
  const found: RunRecord[] = [];
  let cursor: string | undefined;
  do {
    const page = await runs.list(owner, thread, { limit: PAGE, ...omitUndefined({ cursor }) });
    found.push(...page.items.filter(isWanted));
    cursor = page.next_cursor;
  } while (cursor !== undefined && found.length < count);
  return found;
}

type RunOrder = Pick<RunRecord, "created_at" | "id">;

/** Sorts by id if the times are equal. */
function newestFirst(a: RunOrder, b: RunOrder): number {
  const [one, other] = a.created_at === b.created_at ? [a.id, b.id] : [a.created_at, b.created_at];
  return one === other ? 0 : one < other ? 1 : -1;
}

const cursorOf = ({ created_at, id }: RunOrder) => Buffer.from(`${created_at} ${id}`).toString("base64url");

function placeAt(cursor: string): RunOrder {
  const [, created_at, id] =
    /^([\dT:.Z-]{24}) (\S+)$/.exec(Buffer.from(cursor, "base64url").toString()) ?? [];
  if (created_at !== undefined && id !== undefined) return { created_at, id };
  throw new AppError("invalid_request", `\`${cursor}\` is not a valid cursor for this list.`);
}

/**
 * Lists the open interrupts of the user's threads. Threads are sorted by last change, most recent first. A page may be
 * empty.
 */
export async function listInterrupts(
  threads: ThreadStore,
  owner: Owner,
  query: Pick<ThreadQuery, "limit" | "cursor">,
): Promise<Page<Interrupt & { thread_id: string }>> {
  const page = await threads.list(owner, { ...query, status: "interrupted", children: true });
  // A waiting parent already shows the questions of its foreground children.
  const asking = page.items.filter(({ parent }) => parent?.background ?? true);
  const found = asking.map(async ({ id }) =>
    (await openOn(threads, owner, id)).map((interrupt) => ({ ...interrupt, thread_id: id })),
  );
  return { items: (await Promise.all(found)).flat(), ...omitUndefined({ next_cursor: page.next_cursor }) };
}

/** The number of message bytes, as JSON, after which a search ends with its current page of threads. */
const SEARCHED_BYTES = 16 * 1024 * 1024;
const SEARCHED_PAGE = 256 * 1024;
/** The number of characters to search per tick of the event loop. */
const SEARCHED_CHARS = 64 * 1024;
const EXCERPT_CHARS = 160;

export const FoundThread = Thread.extend({
  match: z
    .object({
      message_id: z.string(),
      text: z.string().describe(`Excerpt of up to ${EXCERPT_CHARS} characters.`),
    })
    .optional()
    .describe("The most recent message that contains the text. Absent if only the title contains it."),
}).meta({ id: "FoundThread" });
export type FoundThread = z.infer<typeof FoundThread>;

/**
 * Finds the user's threads whose title or whose user or assistant messages contain the text `q`, ignoring case. Most
 * recently changed threads come first. A long search ends early, possibly with an empty page; the next page continues
 * it. Throws the reason of `signal`.
 */
export async function searchThreads(
  threads: ThreadStore,
  owner: Owner,
  { limit, cursor: from, q, ...filter }: ThreadQuery & { readonly q: string; readonly since?: string },
  signal: AbortSignal,
): Promise<Page<FoundThread>> {
  const items: FoundThread[] = [];
  const budget = { bytes: SEARCHED_BYTES };
  let cursor = from;
  do {
    // Requests only as many threads as fit, so the list's cursor can also be used for the search.
    const page = await listThreads(threads, owner, {
      ...filter,
      limit: Math.min(limit - items.length, PAGE),
      ...omitUndefined({ cursor }),
    });
    for (const thread of page.items) {
      signal.throwIfAborted();
      const match = await newestMatch(threads, owner, { thread: thread.id, q: q.toLowerCase(), budget });
      if (match) items.push({ ...thread, match });
      else if (isIn(thread.title?.toLowerCase() ?? "", q.toLowerCase())) items.push(thread);
    }
    cursor = page.next_cursor;
  } while (cursor !== undefined && items.length < limit && budget.bytes > 0);
  return { items, ...omitUndefined({ next_cursor: cursor }) };
}

interface Search {
  readonly thread: string;
  /** The search text in lowercase. */
  readonly q: string;
  /** The bytes that can still be read. */
  readonly budget: { bytes: number };
}

async function newestMatch(threads: ThreadStore, owner: Owner, { thread, q, budget }: Search) {
  let match: FoundThread["match"];
  let after: string | undefined;
  try {
    for (;;) {
      const { texts, isLast } = await threads.messagePage(owner, thread, { after, bytes: SEARCHED_PAGE });
      for (const json of texts) {
        budget.bytes -= json.length;
        const message = storedMessage(json);
        after = message.id;
        match = (await matchIn(message, q, owner.tenant)) ?? match;
      }
      if (isLast) return match;
    }
  } catch (error) {
    // Messages were removed from the thread in the meantime.
    if (hasCode(error, "not_found")) return match;
    throw error;
  }
}

/**
 * Returns the index of `q` in `text`, ignoring case, or -1. Spreads the search of a long text over several ticks of the
 * event loop.
 */
async function placeOf(q: string, text: string, tenant: string): Promise<number> {
  for (let from = 0; ; from += SEARCHED_CHARS) {
    // A match that begins in this part may end in the next one.
    const at = indexIn(text.slice(from, from + SEARCHED_CHARS + q.length).toLowerCase(), q);
    if (at >= 0) return from + at;
    if (from + SEARCHED_CHARS >= text.length) return -1;
    await ownTick(tenant);
  }
}

async function matchIn(message: Message, q: string, tenant: string): Promise<FoundThread["match"]> {
  if (message.role !== "user" && message.role !== "assistant") return undefined;
  const text = textOf(message.content);
  const at = await placeOf(q, text, tenant);
  if (at < 0) return undefined;
  const from = lastChars(text, text.length - Math.max(0, at - EXCERPT_CHARS / 4));
  return { message_id: message.id, text: firstChars(from, EXCERPT_CHARS) };
}
