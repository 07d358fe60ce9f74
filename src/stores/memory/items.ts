// Items in memory. Every method changes what it changes in one turn of the event loop.

import { type Item, type ItemStore, MAX_ITEMS, type Shelf } from "../../core/items.ts";
import { jsonCopy } from "../../lib/json.ts";
import { itemOrder, itemText, shelfFull } from "../item-limits.ts";
import { noSuchThread } from "../refusals.ts";
import type { Book } from "./book.ts";
import type { ItemEntry } from "./entries.ts";
import { agentShelves, onThread, type Place } from "./shelves.ts";

/** What an item weighs beside its key and its value, about, in bytes. */
const ITEM_BYTES = 200;

export function memoryItems(book: Book): ItemStore {
  const withAgent = agentShelves();

  return {
    async get(shelf, key) {
      return copyOf(placeOf(shelf)?.items.get(key));
    },

    async list(shelf) {
      const entries = [...(placeOf(shelf)?.items.values() ?? [])];
      return entries
        .map(({ item }) => item)
        .sort(itemOrder)
        .map(jsonCopy);
    },

    async put(shelf, { key, value, version }) {
      const text = itemText({ key, value });
      const place = placeOf(shelf);
      if (!place) throw noSuchThread("thread" in shelf.of ? shelf.of.thread : "");
      const before = place.items.get(key)?.item.version ?? 0;
      if (version !== undefined && version !== before) return undefined;
      if (before === 0 && place.items.size >= MAX_ITEMS) throw shelfFull();
      const updated_at = new Date(book.limits.now()).toISOString();
      const item: Item = { key, value: JSON.parse(text), version: before + 1, updated_at };
      const entry = { item, bytes: ITEM_BYTES + Buffer.byteLength(key) + Buffer.byteLength(text) };
      place.set(entry);
      return copyOf(entry);
    },

    async delete(shelf, key) {
      const place = placeOf(shelf);
      if (!place?.items.has(key)) return false;
      place.delete(key);
      return true;
    },
  };

  /** Nothing when its thread is not there. */
  function placeOf(shelf: Shelf): Place | undefined {
    book.assertOpen();
    const { owner, of, kind } = shelf;
    if ("agent" in of) return withAgent(shelf, of.agent);
    const thread = book.find(owner, of.thread);
    return thread && onThread(book, thread, kind);
  }
}

const copyOf = (entry: ItemEntry | undefined) => entry && jsonCopy(entry.item);
