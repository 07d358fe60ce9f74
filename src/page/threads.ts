// The user's threads as shown in the list: kept up to date, searched, and read page by page.

import type { FoundThread } from "../client/client.ts";
import { keepRead, type ListRefresh, onChange } from "./changes.ts";
import { touch } from "./frame.ts";
import { client, messageOf } from "./session.ts";

export interface Threads {
  /** Starts with the most recent change. */
  items: readonly FoundThread[];
  /** The search text, which applies to titles and messages. */
  q: string;
  /** The cursor of the page after `items`. */
  next: string | undefined;
  isReading: boolean;
  /** True once `items` have been read for this `q`. */
  isRead: boolean;
  problem: string | undefined;
}

export const threads: Threads = {
  items: [],
  q: "",
  next: undefined,
  isReading: false,
  isRead: false,
  problem: undefined,
};

const PAGE = 50;
/** The number of waiting threads to read. They come first, regardless of their age. */
const WAITING = 20;
const TYPING_MS = 250;

let kept: ListRefresh | undefined;
let typing: ReturnType<typeof setTimeout> | undefined;

/** Keeps `threads` up to date. Returns a function that stops the updates. */
export function followThreads(): () => void {
  kept = keepRead(({ event }) => CONCERNS.has(event), readFirst);
  // Reading the first page does not reveal that a thread on a later page was deleted.
  const forget = onChange((change) => {
    if (change.event !== "thread_changed" || change.data.change !== "deleted") return;
    threads.items = threads.items.filter(({ id }) => id !== change.data.thread_id);
    touch(threads);
  });
  return () => {
    forget();
    clearTimeout(typing);
    kept?.end();
  };
}

const CONCERNS: ReadonlySet<string> = new Set(["thread_changed", "run_started", "run_ended"]);

/** Call this after this page has changed a thread. */
export const readThreads = () => kept?.readNow();

/** Searches when the user stops typing. Cancels the previous search. */
export function searchThreads(q: string): void {
  if (q === threads.q) return;
  Object.assign(threads, { q, isRead: false, next: undefined });
  clearTimeout(typing);
  typing = setTimeout(readThreads, q === "" ? 0 : TYPING_MS);
  touch(threads);
}

/** Reads the next page. */
export async function readMoreThreads(): Promise<void> {
  const { q, next: cursor } = threads;
  if (cursor === undefined || threads.isReading) return;
  const page = await client.threads.list({ ...queryFor(q), cursor });
  if (threads.q !== q || threads.next !== cursor) return;
  threads.items = merged(threads.items, page.items);
  threads.next = page.next_cursor;
  touch(threads);
}

const queryFor = (q: string) => ({
  limit: PAGE,
  ...(q.trim() ? { q: q.trim(), in: "messages" as const } : {}),
});

async function readFirst(signal: AbortSignal): Promise<void> {
  const { q } = threads;
  threads.isReading = true;
  touch(threads);
  try {
    const [page, waiting] = await Promise.all([
      client.threads.list(queryFor(q), signal),
      q ? { items: [] } : client.threads.list({ status: "interrupted", limit: WAITING }, signal),
    ]);
    const last = page.items.at(-1);
    // Keeps the pages that the user asked for, except for threads that the new first page shows to be deleted.
    const later =
      threads.isRead && page.next_cursor && last
        ? threads.items.filter(({ updated_at }) => updated_at < last.updated_at)
        : [];
    if (later.length === 0 || !threads.next) threads.next = page.next_cursor;
    threads.items = merged(merged(page.items, waiting.items), later);
    Object.assign(threads, { isRead: true, problem: undefined });
  } catch (error) {
    if (signal.aborted) return;
    threads.problem = messageOf(error);
  }
  threads.isReading = false;
  touch(threads);
}

/** Merges two lists. Each thread occurs once, preferably from the first list, starting with the most recent change. */
function merged(first: readonly FoundThread[], then: readonly FoundThread[]): FoundThread[] {
  const known = new Set(first.map(({ id }) => id));
  return [...first, ...then.filter(({ id }) => !known.has(id))].sort((a, b) =>
    a.updated_at < b.updated_at ? 1 : a.updated_at > b.updated_at ? -1 : 0,
  );
}
