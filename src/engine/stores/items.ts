// Items are documents with a time and a version that callers increment. They are the same for every store.

import { change, type Document, type Documents, remove } from "../../agent/core/documents.ts";
import { AppError } from "../../agent/core/errors.ts";
import {
  type Item,
  type ItemStore,
  MAX_ITEM_BYTES,
  MAX_ITEMS,
  MAX_KEY_CHARS,
  type NewItem,
} from "../../agent/core/items.ts";
import { threadIdOf } from "./document-rules.ts";
import { noSuchThread } from "./errors.ts";

export function createItems(documents: Documents): ItemStore {
  return {
    async get(shelf, key) {
      const [found] = (await documents.read(shelf, [key])).found;
      return found && itemOf(found);
    },

    async list(shelf) {
      return (await documents.list(shelf)).map(itemOf).sort(byChange);
    },

    async put(shelf, item) {
      const { key } = item;
      const text = textOf(item);
      const limit = { count: MAX_ITEMS, error: tooMany };
      return change(
        documents,
        { collection: shelf, keys: [key], limit },
        ({ found: [found], exists, now }) => {
          if (!exists) throw noSuchThread(threadIdOf(shelf));
          const before = found ? itemOf(found).version : 0;
          if (item.version !== undefined && item.version !== before) return { result: undefined };
          const body = `${before + 1} ${now} ${text}`;
          return { writes: [{ key, seen: found?.version, body }], result: itemOf({ key, body }) };
        },
      );
    },

    delete: (shelf, key) => remove(documents, shelf, key),
  };
}

/** Returns the item's value as JSON. Throws `limit_exceeded` for an item that is too large. */
function textOf({ key, value }: NewItem): string {
  if (key.length > MAX_KEY_CHARS)
    throw tooLarge(`An item's key can have at most ${MAX_KEY_CHARS} characters; this one has ${key.length}.`);
  const text = JSON.stringify(value) ?? "null";
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_ITEM_BYTES)
    throw tooLarge(`An item can have at most ${MAX_ITEM_BYTES} bytes as JSON; this one has ${bytes}.`);
  return text;
}

const tooLarge = (message: string) => new AppError("limit_exceeded", message);

const tooMany = () =>
  new AppError("limit_exceeded", `There are already ${MAX_ITEMS} items. Delete one first.`, {
    details: { limit: MAX_ITEMS },
  });

/** Parses the version, the time and the value. */
function itemOf({ key, body }: Pick<Document, "key" | "body">): Item {
  const [, version, time, value = ""] = /^(\d+) (\d+) (.*)$/s.exec(body) ?? [];
  return {
    key,
    value: JSON.parse(value),
    version: Number(version),
    updated_at: new Date(Number(time)).toISOString(),
  };
}

function byChange(a: Item, b: Item): number {
  if (a.updated_at !== b.updated_at) return a.updated_at < b.updated_at ? 1 : -1;
  return a.key < b.key ? -1 : 1;
}
