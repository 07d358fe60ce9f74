// Threads in memory. What is returned is a copy: nothing a caller does to it reaches the store.

import type { Owner } from "../../core/ids.ts";
import type { Thread } from "../../core/records.ts";
import type { NewThread, Page, ThreadQuery, ThreadStore } from "../../core/stores.ts";
import { jsonCopy } from "../../lib/json-copy.ts";
import { decodePosition, encodePosition, pageOf } from "../page.ts";
import { noSuchMessage, threadBusy, threadExists } from "../refusals.ts";
import type { Book } from "./book.ts";
import { empty, fill, setSlot, sizeOf } from "./content.ts";
import { isBusy, shelfBytes, THREAD_BYTES, type ThreadEntry } from "./entries.ts";

export function memoryThreads(book: Book): ThreadStore {
  return {
    async create(owner, given) {
      const news = jsonCopy(given);
      if (book.find(owner, news.id)) throw threadExists(news.id);
      book.makeRoom();
      const thread = newThread(book, owner, news);
      describe(book, thread, news);
      fill(book, thread, news);
      return toThread(thread);
    },

    async get(owner, id) {
      const thread = book.find(owner, id);
      return thread && toThread(thread);
    },

    async list(owner, query) {
      return page(book.threadsOf(owner), query);
    },

    async update(owner, id, change) {
      const { forget } = change;
      const thread = forget ? findFree(book, owner, id) : book.find(owner, id);
      if (!thread) return undefined;
      book.makeRoom(thread);
      describe(book, thread, change);
      for (const key of forget ?? []) setSlot(book, thread, { key });
      thread.updatedAt = book.limits.now();
      return toThread(thread);
    },

    async delete(owner, id) {
      const thread = findFree(book, owner, id);
      if (thread) book.remove(thread);
      return thread !== undefined;
    },

    async messages(owner, id, { after, limit } = {}) {
      const messages = book.find(owner, id)?.messages ?? [];
      const from = after === undefined ? 0 : messages.findIndex((message) => message.id === after) + 1;
      if (after !== undefined && from === 0) throw noSuchMessage(after);
      return messages.slice(from, limit === undefined ? undefined : from + limit).map(jsonCopy);
    },

    async clear(owner, id) {
      const thread = findFree(book, owner, id);
      if (!thread) return false;
      empty(book, thread);
      book.forgetCalls(thread);
      book.weigh(thread, -shelfBytes(thread));
      thread.shelves = undefined;
      thread.outcome = "idle";
      thread.updatedAt = book.limits.now();
      book.touch(thread);
      return true;
    },

    async state(owner, id) {
      const slots = book.find(owner, id)?.state ?? [];
      return Object.fromEntries([...slots].map(([key, { value }]) => [key, jsonCopy(value)]));
    },
  };
}

/** Adds an empty thread to the book. */
export function newThread(
  book: Book,
  owner: Owner,
  { id, agent, parent }: Pick<NewThread, "id" | "agent" | "parent">,
): ThreadEntry {
  const now = book.limits.now();
  const thread: ThreadEntry = {
    owner: { tenant: owner.tenant, user: owner.user },
    id,
    parent,
    agent,
    title: undefined,
    metadata: {},
    outcome: "idle",
    createdAt: now,
    updatedAt: now,
    usedAt: now,
    messages: [],
    ids: undefined,
    state: undefined,
    runs: [],
    active: undefined,
    queue: [],
    begunCount: 0,
    deferred: undefined,
    shelves: undefined,
    messageCount: 0,
    bytes: THREAD_BYTES + (parent ? sizeOf(parent) : 0),
    contentBytes: 0,
    packed: undefined,
  };
  book.add(thread);
  return thread;
}

/** Throws `thread_busy`. */
function findFree(book: Book, owner: Owner, id: string): ThreadEntry | undefined {
  const thread = book.find(owner, id);
  const run = thread?.active ?? thread?.queue[0];
  if (run) throw threadBusy(id, run.id);
  return thread;
}

function describe(
  book: Book,
  thread: ThreadEntry,
  { title, metadata }: Pick<Partial<Thread>, "title" | "metadata">,
) {
  const before = weightOf(thread);
  if (title !== undefined) thread.title = title;
  if (metadata !== undefined) thread.metadata = { ...metadata };
  book.weigh(thread, weightOf(thread) - before);
}

const weightOf = ({ title, metadata }: ThreadEntry) => Buffer.byteLength(JSON.stringify([title, metadata]));

function page(threads: readonly ThreadEntry[], { limit, cursor, ...filter }: ThreadQuery): Page<Thread> {
  const start = cursor === undefined ? undefined : decodePosition(cursor);
  const q = filter.q?.toLowerCase();
  const found = threads
    .filter((thread) => isOfFamily(thread, filter))
    .filter((thread) => filter.agent === undefined || thread.agent === filter.agent)
    .filter((thread) => filter.status === undefined || statusOf(thread) === filter.status)
    .filter((thread) => q === undefined || thread.title?.toLowerCase().includes(q))
    .sort(newestFirst)
    .filter((thread) => start === undefined || newestFirst(start, thread) < 0);
  const { items, ...next } = pageOf(found, limit, encodePosition);
  return { items: items.map(toThread), ...next };
}

function isOfFamily({ parent }: ThreadEntry, query: Pick<ThreadQuery, "parent" | "children">): boolean {
  if (query.parent !== undefined) return parent?.thread_id === query.parent;
  return query.children === true || parent === undefined;
}

function newestFirst(
  a: Pick<ThreadEntry, "updatedAt" | "id">,
  b: Pick<ThreadEntry, "updatedAt" | "id">,
): number {
  return b.updatedAt - a.updatedAt || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
}

const statusOf = (thread: ThreadEntry) => (isBusy(thread) ? "busy" : thread.outcome);

function toThread(thread: ThreadEntry): Thread {
  const { id, agent, title, metadata, parent } = thread;
  return {
    id,
    ...(agent === undefined ? {} : { agent }),
    ...(title === undefined ? {} : { title }),
    metadata: { ...metadata },
    ...(parent ? { parent: { ...parent } } : {}),
    status: statusOf(thread),
    message_count: thread.messageCount,
    created_at: new Date(thread.createdAt).toISOString(),
    updated_at: new Date(thread.updatedAt).toISOString(),
  };
}
