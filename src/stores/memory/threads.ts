// Threads in memory. What is returned is a copy: nothing a caller does to it reaches the store.

import type { Owner } from "../../core/ids.ts";
import type { Thread } from "../../core/records.ts";
import type { NewThread, Page, ThreadQuery } from "../../core/stores.ts";
import { decodePosition, encodePosition, pageOf } from "../page.ts";
import { sizeOf } from "./commit-events.ts";
import type { MemoryThreads } from "./memory-threads.ts";
import { isBusy, THREAD_BYTES, type ThreadEntry } from "./records.ts";

/** Adds an empty thread to the memory. */
export function newThread(
  memory: MemoryThreads,
  owner: Owner,
  { id, agent, parent, forked_from }: Pick<NewThread, "id" | "agent" | "parent" | "forked_from">,
  now: number,
): ThreadEntry {
  const thread: ThreadEntry = {
    owner: { tenant: owner.tenant, user: owner.user },
    id,
    parent,
    forkedFrom: forked_from,
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
    head: { owner: { tenant: owner.tenant, user: owner.user }, id, active: undefined, queue: [] },
    until: 0,
    begunCount: 0,
    deferred: undefined,
    collections: undefined,
    messageCount: 0,
    messageBytes: 0,
    bytes: THREAD_BYTES + (parent ? sizeOf(parent) : 0) + (forked_from ? sizeOf(forked_from) : 0),
    contentBytes: 0,
    compressed: undefined,
  };
  memory.add(thread);
  return thread;
}

export function describe(
  memory: MemoryThreads,
  thread: ThreadEntry,
  {
    title,
    metadata,
  }: { readonly title?: string | undefined; readonly metadata?: Thread["metadata"] | undefined },
) {
  const before = weightOf(thread);
  if (title !== undefined) thread.title = title;
  if (metadata !== undefined) thread.metadata = { ...metadata };
  memory.weigh(thread, weightOf(thread) - before);
}

const weightOf = ({ title, metadata }: ThreadEntry) => Buffer.byteLength(JSON.stringify([title, metadata]));

export function pageOfThreads(
  threads: readonly ThreadEntry[],
  { limit, cursor, ...filter }: ThreadQuery,
): Page<Thread> {
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

export function toThread(thread: ThreadEntry): Thread {
  const { id, agent, title, metadata, parent, forkedFrom } = thread;
  return {
    id,
    ...(agent === undefined ? {} : { agent }),
    ...(title === undefined ? {} : { title }),
    metadata: { ...metadata },
    ...(parent ? { parent: { ...parent } } : {}),
    ...(forkedFrom ? { forked_from: { ...forkedFrom } } : {}),
    status: statusOf(thread),
    message_count: thread.messageCount,
    created_at: new Date(thread.createdAt).toISOString(),
    updated_at: new Date(thread.updatedAt).toISOString(),
  };
}
