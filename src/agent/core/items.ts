// The port to items, which are small documents that a thread shares with its subagents, or that a user keeps for an agent. Each
// write replaces the whole item. Pass the version that you read to avoid overwriting another writer's change.

import type { Owner } from "../../protocol/ids.ts";

/** The maximum number of items per shelf. */
export const MAX_ITEMS = 256;
/** The maximum number of bytes in an item's value as JSON. */
export const MAX_ITEM_BYTES = 64 * 1024;
/** The maximum number of characters in an item's key. */
export const MAX_KEY_CHARS = 256;

/**
 * Where items are stored: with a thread, until it is cleared or deleted, or with an owner's agent, until they
 * are deleted.
 */
export interface Shelf {
  readonly owner: Owner;
  readonly of: { readonly thread: string } | { readonly agent: string };
  readonly kind: "notes" | "tasks" | "reflections" | "settings" | "sent";
}

export interface Item {
  readonly key: string;
  /** The JSON value. Callers get a copy. */
  readonly value: unknown;
  /** Starts at 1 and increases by one with each `put`. Restarts after a deletion. */
  readonly version: number;
  readonly updated_at: string;
}

export interface NewItem {
  readonly key: string;
  readonly value: unknown;
  /**
   * Writes only if the item is at this version. 0 requires that the item does not exist. If unset, always
   * writes.
   */
  readonly version?: number;
}

export interface ItemStore {
  get(shelf: Shelf, key: string): Promise<Item | undefined>;
  /**
   * Returns all items of a shelf, most recently changed first. Items changed in the same millisecond are
   * sorted by key.
   */
  list(shelf: Shelf): Promise<Item[]>;
  /**
   * Writes one item atomically. Returns undefined, without writing, when the item is not at `item.version`.
   * Throws `not_found` when the shelf's thread does not exist, and `limit_exceeded` beyond `MAX_ITEMS` or for
   * an item that is too large.
   */
  put(shelf: Shelf, item: NewItem): Promise<Item | undefined>;
  /** Deletes an item. Returns false when it does not exist. */
  delete(shelf: Shelf, key: string): Promise<boolean>;
}
