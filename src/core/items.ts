// The port to small documents that lie beside threads: what a family of threads shares, and what a user keeps with an
// agent. Each is written as a whole; who must not overwrite another says which version it has read.

import type { Owner } from "./ids.ts";

/** Of one shelf. */
export const MAX_ITEMS = 256;
/** Of an item's value as JSON, in bytes. */
export const MAX_ITEM_BYTES = 64 * 1024;
/** Of an item's key, in characters. */
export const MAX_KEY_CHARS = 256;

/**
 * Where items lie: with a thread, which they leave with (a cleared thread has none), or with an owner's agent, where they
 * stay until they are deleted.
 */
export interface Shelf {
  readonly owner: Owner;
  readonly of: { readonly thread: string } | { readonly agent: string };
  readonly kind: "notes" | "tasks" | "reflections" | "settings";
}

export interface Item {
  readonly key: string;
  /** JSON; a copy. */
  readonly value: unknown;
  /** 1, 2, 3 … with each `put`; a deleted key begins anew. */
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
   * Writes one item, atomically. Nothing, and nothing written, when it is not at `item.version`. Throws `not_found` when
   * the shelf's thread is not there, `limit_exceeded` for one item more than `MAX_ITEMS`, or one that is too large.
   */
  put(shelf: Shelf, item: NewItem): Promise<Item | undefined>;
  /** False when there was none. */
  delete(shelf: Shelf, key: string): Promise<boolean>;
}
