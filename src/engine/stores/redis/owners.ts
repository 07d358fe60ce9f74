// Lists the owners of threads in Redis: one sorted set of all owners, by name. An owner is added before a thread is
// created and again when it is used later. Owners without threads are removed when the list is read.

import { LRUCache } from "lru-cache";
import type { Shelf } from "../../../agent/core/items.ts";
import { atMost } from "../../../lib/lru.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { OwnerIndex } from "../owners.ts";
import type { RedisConnection } from "./connection.ts";
import { OWNERS, shelvesKey, threadsKey } from "./keys.ts";
import { ownerOf, ownerText } from "./records.ts";

/**
 * The number of milliseconds for which a recorded owner is not recorded again, unless too many others were recorded in
 * the meantime.
 */
const NOTED_MS = 60_000;
const MAX_NOTED = 10_000;

export interface RedisOwners extends OwnerIndex {
  /** Records that the owner has a thread or is about to get one. Throws `unavailable`. */
  note(owner: Owner): Promise<void>;
  /** Records that an item is about to be stored with one of the owner's agents. Throws `unavailable`. */
  noteShelf(shelf: Pick<Shelf, "owner" | "kind">, agent: string): Promise<void>;
}

export function redisOwners(redis: RedisConnection): RedisOwners {
  const noted = new LRUCache<string, true>({ ...atMost(MAX_NOTED), ttl: NOTED_MS });

  return {
    note: (owner) => {
      const text = ownerText(owner);
      return once(text, () => redis.ask((client) => client.zadd(OWNERS, 0, text)));
    },

    noteShelf({ owner, kind }, agent) {
      const name = `${kind}:${agent}`;
      const key = shelvesKey(owner);
      return once(`${key} ${name}`, () => redis.ask((client) => client.sadd(key, name)));
    },

    async between(after, before, limit) {
      const found: string[] = [];
      for (let start = after; found.length < limit; ) {
        const count = limit - found.length;
        const range = { min: `(${start}`, max: `(${before}` };
        const texts = await redis.ask((client) =>
          client.zrangebylex(OWNERS, range.min, range.max, "LIMIT", 0, count),
        );
        found.push(...(await havingThreads(texts)));
        if (texts.length < count) break;
        start = texts.at(-1) ?? before;
      }
      return found;
    },

    async shelves(owner) {
      const names = await redis.ask((client) => client.smembers(shelvesKey(owner)));
      return names.map((name) => {
        // Not validated, because only `noteShelf` writes these.
        const [, kind, agent = ""] = /^(\w+):(.*)$/s.exec(name) as unknown as [string, Shelf["kind"], string];
        return { owner, of: { agent }, kind };
      });
    },
  };

  async function once(name: string, note: () => Promise<unknown>): Promise<void> {
    if (noted.get(name)) return;
    noted.set(name, true);
    try {
      await note();
    } catch (error) {
      noted.delete(name);
      throw error;
    }
  }

  /** Returns the owners that have threads, and removes all others from the list. */
  async function havingThreads(texts: readonly string[]): Promise<string[]> {
    const exist = await Promise.all(
      texts.map((text) => redis.ask((client) => client.exists(threadsKey(ownerOf(text))))),
    );
    const gone = texts.filter((_, at) => exist[at] === 0);
    if (gone.length > 0) await redis.ask((client) => client.zrem(OWNERS, gone));
    return texts.filter((_, at) => exist[at] !== 0);
  }
}
