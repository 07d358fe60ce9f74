// What every store holds an item against before it is kept, and the order in which items are listed.

import { AppError } from "../core/errors.ts";
import { type Item, MAX_ITEM_BYTES, MAX_ITEMS, MAX_KEY_CHARS, type NewItem } from "../core/items.ts";

/** The item's value as JSON. Throws `limit_exceeded` for an item that is too large. */
export function itemText({ key, value }: NewItem): string {
  if (key.length > MAX_KEY_CHARS)
    throw tooLarge(`An item's key may have ${MAX_KEY_CHARS} characters; this one has ${key.length}.`);
  const text = JSON.stringify(value) ?? "null";
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_ITEM_BYTES)
    throw tooLarge(`An item may have ${MAX_ITEM_BYTES} bytes as JSON; this one has ${bytes}.`);
  return text;
}

function tooLarge(message: string): AppError {
  return new AppError("limit_exceeded", message);
}

export function shelfFull(): AppError {
  return new AppError("limit_exceeded", `There are ${MAX_ITEMS} items already. Delete one first.`, {
    details: { limit: MAX_ITEMS },
  });
}

/** Last changed first; of those changed in the same millisecond, by key. */
export function itemOrder(a: Item, b: Item): number {
  if (a.updated_at !== b.updated_at) return a.updated_at < b.updated_at ? 1 : -1;
  return a.key < b.key ? -1 : 1;
}
