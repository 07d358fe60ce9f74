// Where items lie in memory: with a thread, and gone with it, or with an agent of somebody's.

import type { Shelf } from "../../core/items.ts";
import type { Book } from "./book.ts";
import { type ItemEntry, type Items, type ThreadEntry, weightOf } from "./entries.ts";

/** One shelf. What changes it weighs it. */
export interface Place {
  readonly items: ReadonlyMap<string, ItemEntry>;
  /** Throws `unavailable` when there is no room. */
  set(entry: ItemEntry): void;
  delete(key: string): void;
}

/** What all shelves of agents together may weigh, and how many there may be. Past it the least recently used one goes. */
const MAX_BYTES = 64 * 1024 * 1024;
const MAX_SHELVES = 10_000;

export function onThread(book: Book, thread: ThreadEntry, kind: Shelf["kind"]): Place {
  const items: Items = thread.shelves?.get(kind) ?? new Map();
  return {
    items,
    set(entry) {
      book.makeRoom(thread);
      thread.shelves ??= new Map();
      thread.shelves.set(kind, items);
      book.weigh(thread, growth(items, entry));
      items.set(entry.item.key, entry);
    },
    delete(key) {
      book.weigh(thread, -(items.get(key)?.bytes ?? 0));
      items.delete(key);
      if (items.size === 0) thread.shelves?.delete(kind);
    },
  };
}

/** Every use of a shelf makes it the one that was used last. */
export function agentShelves(): (shelf: Shelf, agent: string) => Place {
  /** The one that was not used for longest comes first. JSON keeps apart whatever the names contain. */
  const shelves = new Map<string, Items>();
  let bytes = 0;

  return ({ owner, kind }, agent) => {
    const name = JSON.stringify([owner.tenant, owner.user, agent, kind]);
    const items: Items = shelves.get(name) ?? new Map();
    if (shelves.delete(name)) shelves.set(name, items);
    return {
      items,
      set(entry) {
        bytes += growth(items, entry);
        items.set(entry.item.key, entry);
        shelves.set(name, items);
        dropOldest();
      },
      delete(key) {
        bytes -= items.get(key)?.bytes ?? 0;
        items.delete(key);
        if (items.size === 0) shelves.delete(name);
      },
    };
  };

  function dropOldest(): void {
    for (const [name, items] of shelves) {
      if (bytes <= MAX_BYTES && shelves.size <= MAX_SHELVES) return;
      shelves.delete(name);
      bytes -= weightOf(items);
    }
  }
}

function growth(items: Items, { item, bytes }: ItemEntry): number {
  return bytes - (items.get(item.key)?.bytes ?? 0);
}
