// Threads in Redis.

import type { Owner } from "../../core/ids.ts";
import type { Message } from "../../core/message.ts";
import type { Thread } from "../../core/records.ts";
import type { NewThread, ThreadQuery, ThreadStore } from "../../core/stores.ts";
import { randomId } from "../../lib/random-id.ts";
import { decodePosition, encodePosition, pageOf } from "../page.ts";
import { noSuchMessage, threadBusy, threadExists } from "../refusals.ts";
import { beginningOf } from "./beginning.ts";
import { deletionOf } from "./changes.ts";
import type { Engine } from "./engine.ts";
import { ASKING_MS, deletedKey, eventsKey, threadKeys, threadTag } from "./keys.ts";
import { ownerText, stateOf, threadOf } from "./records.ts";
import { clearThread } from "./scripts/clear-thread.ts";
import { createThread } from "./scripts/create-thread.ts";
import { deleteThread } from "./scripts/delete-thread.ts";
import { describeThread } from "./scripts/describe-thread.ts";
import { readMessages } from "./scripts/read-messages.ts";
import { readState } from "./scripts/read-state.ts";
import { updateThread } from "./scripts/update-thread.ts";
import { type Listed, listed } from "./thread-list.ts";

export function redisThreads({ redis, lifetime }: Engine): ThreadStore {
  const keysOf = (owner: Owner, id: string) => threadKeys(threadTag(owner, id));

  return {
    async create(owner, thread) {
      const { id, agent = "", parent } = thread;
      await lifetime.list(owner, id);
      const { added, args } = beginningOf(thread);
      const about = { ...described(thread), agent, parent: parent ? JSON.stringify(parent) : "" };
      const more = { owner: ownerText(owner), by: randomId(), ttl: lifetime.ttlOf("idle"), added };
      const created = await redis.run(createThread, keysOf(owner, id), { ...about, ...more }, args);
      if (created === 0) throw threadExists(id);
      return newThread(thread, added, new Date(created).toISOString());
    },

    async get(owner, id) {
      return find(owner, id, (life) => lifetime.used(owner, id, life));
    },

    async list(owner, { limit, cursor, ...filter }) {
      const start = cursor === undefined ? undefined : decodePosition(cursor);
      const found: Found[] = [];
      for await (const chunk of listed(redis, owner, start)) {
        const threads = await Promise.all(chunk.map((place) => look(owner, place)));
        found.push(
          ...threads.filter((each) => each !== undefined).filter(({ thread }) => fits(thread, filter)),
        );
        if (found.length > limit) break;
      }
      const { items, ...next } = pageOf(found, limit, ({ place }) => encodePosition(place));
      return { items: items.map(({ thread }) => thread), ...next };
    },

    async update(owner, id, change) {
      const { forget } = change;
      const args = { ...described(change), forgets: forget ? 1 : "" };
      const reply = await redis.run(updateThread, keysOf(owner, id), args, forget?.flatMap(deletionOf));
      if (!isDone(id, reply)) return undefined;
      await lifetime.changed(owner, id);
      return find(owner, id, (life) => lifetime.used(owner, id, life));
    },

    async delete(owner, id) {
      const thread = threadTag(owner, id);
      const keys = { ...threadKeys(thread), deleted: deletedKey(thread, randomId()) };
      const args = { events: eventsKey(thread, ""), asking: ASKING_MS };
      return isDone(id, await redis.run(deleteThread, keys, args));
    },

    async messages(owner, id, { after = "", limit } = {}) {
      const args = { after, limit: limit ?? "" };
      const found = await redis.run(readMessages, keysOf(owner, id), args);
      if (!found) throw noSuchMessage(after);
      lifetime.used(owner, id, found[1]);
      // Only messages are put into this list.
      return found[0].map((text) => JSON.parse(text) as Message);
    },

    async clear(owner, id) {
      const isCleared = isDone(id, await redis.run(clearThread, keysOf(owner, id), {}));
      if (!isCleared) return false;
      lifetime.renew(owner, id);
      // It is cleared, whether or not the owner's list can be told.
      await lifetime.changed(owner, id).catch(() => {});
      return true;
    },

    async state(owner, id) {
      const [set, patches, life] = await redis.run(readState, keysOf(owner, id), {});
      lifetime.used(owner, id, life);
      return stateOf(set, patches);
    },
  };

  async function find(owner: Owner, id: string, use?: (life: string) => void): Promise<Thread | undefined> {
    const found = await redis.run(describeThread, keysOf(owner, id), {});
    if (found) use?.(found[8]);
    return found ? threadOf(id, found) : undefined;
  }

  async function look(owner: Owner, place: Listed): Promise<Found | undefined> {
    const thread = await find(owner, place.id);
    if (!thread) lifetime.unlist(owner, place.id, place.seen);
    return thread && { thread, place };
  }
}

interface Found {
  readonly thread: Thread;
  readonly place: Listed;
}

function newThread({ id, agent, title, metadata, parent }: NewThread, messages: number, now: string): Thread {
  return {
    id,
    ...(agent === undefined ? {} : { agent }),
    ...(title === undefined ? {} : { title }),
    metadata: { ...metadata },
    ...(parent === undefined ? {} : { parent: { ...parent } }),
    ...{ status: "idle", message_count: messages, created_at: now, updated_at: now },
  };
}

interface Described {
  readonly title?: string | undefined;
  readonly metadata?: Thread["metadata"] | undefined;
}

/** As the scripts take it: nothing for what is not said. */
function described({ title, metadata }: Described) {
  return {
    title: title === undefined ? "" : JSON.stringify(title),
    metadata: metadata ? JSON.stringify(metadata) : "",
  };
}

/** Throws `thread_busy` when a run was in the way. */
function isDone(id: string, reply: string | 0 | 1): boolean {
  if (typeof reply === "string") throw threadBusy(id, reply);
  return reply === 1;
}

function fits(
  thread: Thread,
  { agent, status, q, parent, children }: Omit<ThreadQuery, "limit" | "cursor">,
): boolean {
  if (parent !== undefined && thread.parent?.thread_id !== parent) return false;
  if (parent === undefined && !children && thread.parent) return false;
  if (agent !== undefined && thread.agent !== agent) return false;
  if (status !== undefined && thread.status !== status) return false;
  return q === undefined || (thread.title?.toLowerCase().includes(q.toLowerCase()) ?? false);
}
