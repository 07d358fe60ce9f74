// The port to items, small documents beside threads: shared by a thread and its subagents, or kept by a user for an agent.
// Each is written whole; a writer that must not overwrite another passes the version it has read.

import type { Owner } from "../../protocol/ids.ts";

/** Per shelf. */
export const MAX_ITEMS = 256;
/** Of an item's value as JSON, in bytes. */
export const MAX_ITEM_BYTES = 64 * 1024;
/** Of an item's key, in characters. */
export const MAX_KEY_CHARS = 256;

/**
 * Where items are kept: with a thread, until it is cleared or deleted, or with an owner's agent, until they are deleted.
 */
export interface Shelf {
  readonly owner: Owner;
  readonly of: { readonly thread: string } | { readonly agent: string };
  readonly kind: "notes" | "tasks" | "reflections" | "settings" | "sent";
}

export interface Item {
  readonly key: string;
  /** JSON; a copy. */
  readonly value: unknown;
  /** 1, 2, 3 … with each `put`; starts again after a deletion. */
  readonly version: number;
  readonly updated_at: string;
}

export interface NewItem {
  readonly key: string;
  readonly value: unknown;
  /** Write only if the item is at this version; 0: only if there is none. Without it: in any case. */
  readonly version?: number;
}

export interface ItemStore {
  get(shelf: Shelf, key: string): Promise<Item | undefined>;
  /** All of a shelf, last changed first; of those changed in the same millisecond, by key. */
  list(shelf: Shelf): Promise<Item[]>;
  /**
   * Writes one item, atomically. Returns undefined, having written nothing, when it is not at `item.version`. Throws
   * `not_found` without the shelf's thread, `limit_exceeded` beyond `MAX_ITEMS` and for an item that is too large.
   */
  put(shelf: Shelf, item: NewItem): Promise<Item | undefined>;
  /** False when there was none. */
  delete(shelf: Shelf, key: string): Promise<boolean>;
}
