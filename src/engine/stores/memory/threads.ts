// Threads in memory. Returned values are copies, so no caller can change stored data.

import type { Thread } from "../../../agent/core/records.ts";
import type { NewThread, Page, ThreadQuery } from "../../../agent/core/stores.ts";
import { isIn } from "../../../lib/search.ts";
import { isTickSpent, sharedTick } from "../../../lib/ticks.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { decodePosition, encodePosition, type Position, pageOf } from "../page.ts";
import { sizeOf } from "./commit-events.ts";
import type { MemoryThreads } from "./memory-threads.ts";
import { isBusy, THREAD_BYTES, type ThreadEntry } from "./records.ts";
import { changedBefore } from "./thread-lists.ts";

/** Adds an empty thread to memory. */
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
    isHeld: false,
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

/** Uses as many ticks of the event loop as needed, because a filter may skip all of the owner's threads. */
export async function pageOfThreads(
  memory: MemoryThreads,
  owner: Owner,
  { limit, cursor, ...filter }: ThreadQuery,
): Promise<Page<Thread>> {
  const fits = filterOf(filter);
  const found: { readonly thread: Thread; readonly place: Position }[] = [];
  let last = cursor === undefined ? undefined : decodePosition(cursor);
  for (;;) {
    const threads = memory.threadsOf(owner, filter.parent);
    let left = last ? changedBefore(threads, last) : threads.length;
    while (left > 0 && found.length <= limit && !isTickSpent()) {
      const thread = threads[--left];
      if (!thread) break;
      // A thread that changes before the page is full keeps its place on the page.
      last = { updatedAt: thread.updatedAt, id: thread.id };
      if (fits(thread) && !memory.isDue(thread)) found.push({ thread: toThread(thread), place: last });
    }
    if (left === 0 || found.length > limit) break;
    await sharedTick(owner.tenant);
  }
  const { items, ...next } = pageOf(found, limit, ({ place }) => encodePosition(place));
  return { items: items.map(({ thread }) => thread), ...next };
}

type Filter = Omit<ThreadQuery, "limit" | "cursor">;

function filterOf({ parent, children, agent, status, q }: Filter): (thread: ThreadEntry) => boolean {
  const part = q?.toLowerCase();
  return (thread) =>
    (parent !== undefined || children === true || !thread.parent) &&
    (agent === undefined || thread.agent === agent) &&
    (status === undefined || statusOf(thread) === status) &&
    (part === undefined || isIn(thread.title?.toLowerCase() ?? "", part));
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
