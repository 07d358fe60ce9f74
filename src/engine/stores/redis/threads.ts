// Reads threads from Redis.

import type { Thread } from "../../../agent/core/records.ts";
import { storedMessage } from "../../../agent/core/stored-json.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { noSuchMessage } from "../errors.ts";
import type { Kernel } from "../kernel.ts";
import { decodePosition, encodePosition, pageOf } from "../page.ts";
import { fits } from "../thread-filter.ts";
import { LITTLE_BYTES } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { threadKeys, threadTag } from "./keys.ts";
import { headViewOf, type RedisView, stateOf, threadOf } from "./records.ts";
import { listed, type TimedPosition } from "./retention.ts";
import { describeThread, readBytes, readMessage, readMessages, readState } from "./thread-scripts.ts";

/** `onRead` receives every thread that `get` returns. */
export function redisThreads(
  { redis, retention }: StoreContext,
  onRead: (owner: Owner, id: string, view: RedisView) => void,
): Kernel<unknown>["threads"] {
  const keysOf = (owner: Owner, id: string) => threadKeys(threadTag(owner, id));

  return {
    async get(owner, id) {
      return (await read(owner, id))?.thread;
    },

    async measured(owner, id) {
      const found = await read(owner, id);
      return found && { thread: found.thread, bytes: found.bytes };
    },

    async list(owner, { limit, cursor, ...filter }) {
      const start = cursor === undefined ? undefined : decodePosition(cursor);
      const found: ListedThread[] = [];
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

    bytes: (owner, id) => redis.run(readBytes, keysOf(owner, id), {}),

    async message(owner, id, messageId) {
      const [text, life] = await redis.runBulk(owner.tenant)(readMessage, keysOf(owner, id), {
        message: messageId ?? "",
        last: messageId === undefined ? 1 : "",
      });
      retention.used(owner, id, life);
      return text === null ? undefined : storedMessage(text);
    },

    async messagePage(owner, id, { after = "", limit, bytes }) {
      const keys = keysOf(owner, id);
      const page = { after, limit: limit ?? "" };
      const little = Math.min(bytes, LITTLE_BYTES);
      const short = await redis.run(readMessages, keys, { ...page, bytes: little, whole: 1 });
      if (!short) throw noSuchMessage(after);
      if (short[0].length > 0 || short[1] === 1) return pageIn(short);
      const long = await redis.runBulk(owner.tenant)(readMessages, keys, { ...page, bytes, whole: "" });
      if (!long) throw noSuchMessage(after);
      return pageIn(long);

      function pageIn([texts, isLast, life]: NonNullable<typeof short>) {
        retention.used(owner, id, life);
        return { texts, isLast: isLast === 1 };
      }
    },

    async state(owner, id) {
      const keys = keysOf(owner, id);
      const short = await redis.run(readState, keys, { bytes: LITTLE_BYTES });
      // The script always replies if there is no limit on the bytes.
      const found = short ?? (await redis.runBulk(owner.tenant)(readState, keys, { bytes: "" }));
      const [set = [], patches = [], life = ""] = found ?? [];
      retention.used(owner, id, life);
      return stateOf(set, patches);
    },
  };

  async function find(owner: Owner, id: string): Promise<ViewedThread | undefined> {
    const found = await redis.run(describeThread, keysOf(owner, id), {});
    if (!found) return undefined;
    const view = headViewOf(id, found[1]);
    return { thread: threadOf(id, found, view), view, bytes: Number(found[9] ?? 0) };
  }

  async function read(owner: Owner, id: string): Promise<ViewedThread | undefined> {
    const found = await find(owner, id);
    if (!found) return undefined;
    retention.used(owner, id, found.view.life);
    onRead(owner, id, found.view);
    return found;
  }

  async function look(owner: Owner, place: TimedPosition): Promise<ListedThread | undefined> {
    const found = await find(owner, place.id);
    if (!found) retention.unlist(owner, place.id, place.seen);
    return found && { thread: found.thread, place };
  }
}

interface ViewedThread {
  readonly thread: Thread;
  readonly view: RedisView;
  /** The size of the thread's messages in bytes. */
  readonly bytes: number;
}

interface ListedThread {
  readonly thread: Thread;
  readonly place: TimedPosition;
}
