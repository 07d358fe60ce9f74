// Small documents beside threads, in Redis: a hash for each shelf. Those of a thread lie in its place and go with it.

import { type Item, type ItemStore, MAX_ITEMS, type Shelf } from "../../core/items.ts";
import { randomId } from "../../lib/random-id.ts";
import { itemOrder, itemText, shelfFull } from "../item-limits.ts";
import { noSuchThread } from "../refusals.ts";
import type { Engine } from "./engine.ts";
import { ASKING_MS, shelfKeys } from "./keys.ts";
import { deleteItem } from "./scripts/delete-item.ts";
import { listItems } from "./scripts/list-items.ts";
import { putItem } from "./scripts/put-item.ts";
import { readItem } from "./scripts/read-item.ts";

export function redisItems({ redis, lifetime }: Pick<Engine, "redis" | "lifetime">): ItemStore {
  return {
    async get(shelf, key) {
      const [text, life] = await redis.run(readItem, keysOf(shelf), { key: nameOf(key) });
      used(shelf, life);
      return text === null ? undefined : itemOf(key, text);
    },

    async list(shelf) {
      const [found, life] = await redis.run(listItems, keysOf(shelf), {});
      used(shelf, life);
      const items: Item[] = [];
      for (let at = 0; at < found.length; at += 2)
        items.push(itemOf(JSON.parse(found[at] ?? ""), found[at + 1] ?? ""));
      return items.sort(itemOrder);
    },

    async put(shelf, item) {
      const { key, version } = item;
      const value = itemText(item);
      const args = { key: nameOf(key), value, seen: version ?? "", cap: MAX_ITEMS, asking: ASKING_MS };
      const put = await redis.run(putItem, keysOf(shelf), args);
      if (put === "full") throw shelfFull();
      if (put === "none") throw noSuchThread("thread" in shelf.of ? shelf.of.thread : "");
      if (put === null) return undefined;
      const [stamp, life] = put;
      used(shelf, life);
      return itemOf(key, `${stamp} ${value}`);
    },

    async delete(shelf, key) {
      return (await redis.run(deleteItem, keysOf(shelf), { key: nameOf(key), asking: ASKING_MS })) === 1;
    },
  };

  function used({ owner, of }: Shelf, life: string): void {
    if ("thread" in of) lifetime.used(owner, of.thread, life);
  }
}

/** Of one call. */
const keysOf = (shelf: Shelf) => shelfKeys(shelf, randomId());

/** Whatever is in a key, another key has another name. */
const nameOf = (key: string) => JSON.stringify(key);

/** As the scripts keep it: version, time, value. */
function itemOf(key: string, text: string): Item {
  const [, version, time, value = ""] = /^(\d+) (\d+) (.*)$/s.exec(text) ?? [];
  return {
    key,
    value: JSON.parse(value),
    version: Number(version),
    updated_at: new Date(Number(time)).toISOString(),
  };
}
