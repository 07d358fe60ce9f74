// The port to small documents: HTTP tools, API keys, sandboxes, and what agents keep beside threads. A store only keeps
// them and compares versions; the room that a document belongs to decides what may follow what, with `change`.

import { randomId } from "../lib/random-id.ts";
import type { AppError } from "./errors.ts";
import type { Shelf } from "./items.ts";
import type { Page } from "./stores.ts";

/** The documents of a shelf, of a tenant, or of the whole deployment. Those of a thread go when it is cleared or deleted. */
export type Collection = Shelf | { readonly kind: string; readonly tenant?: string };

export interface Document {
  readonly key: string;
  readonly body: string;
  /** Changes with every write and never comes back, also after a deletion. Only compared. */
  readonly version: string;
}

export interface DocumentWrite {
  readonly key: string;
  /** The version that was read; undefined: there was no such document. */
  readonly seen: string | undefined;
  /** Undefined deletes the document. */
  readonly body: string | undefined;
  /** From when on `due` lists it, in ms since 1970. */
  readonly due?: number | null;
}

export interface Found {
  /** In the order of the keys. */
  readonly found: readonly (Document | undefined)[];
  /** False when the collection's thread does not exist. */
  readonly exists: boolean;
  /** The store's clock, in ms since 1970. */
  readonly now: number;
}

/** Collections in which documents are listed in order. Those of shelves are small: `list` returns all of them. */
export type ListedCollection = Exclude<Collection, Shelf>;

export interface ListedDocument extends Document {
  /** By the store's clock, in ms since 1970. */
  readonly created_at: number;
  /** When it was written last. */
  readonly updated_at: number;
}

/**
 * `key`: in the order of their bytes, which is kept for keys out of `A-Z a-z 0-9 - _ . : /`. `created` and `updated`: newest first;
 * those of one millisecond by key, backwards.
 */
export type ListOrder = "key" | "created" | "updated";

export interface ListQuery {
  readonly order: ListOrder;
  /** How the keys begin; only with the order `key`. */
  readonly prefix?: string;
  /** 1 or more. */
  readonly limit: number;
  /** `next_cursor` of the page before, of a query of the same order. */
  readonly cursor?: string | undefined;
  /** In place of a cursor, only with the order `key`: the key, which need not exist, that the page begins behind. */
  readonly after?: string | undefined;
}

/** Documents that stay: those that were created within the last `ms`, and of them the newest `count`. */
export interface Retention {
  readonly ms?: number;
  readonly count?: number;
}

/** Maximum number of documents that one call of `trim` deletes. */
export const TRIMMED = 1_000;
/** Maximum number of documents that one call of `pick` returns. */
export const MAX_PICKED = 100;

export interface PickOptions {
  readonly limit: number;
  readonly holdMs: number;
  /** As for `due`: for documents that are never due later than that from now. */
  readonly aheadMs?: number | undefined;
}

/** A document that is due, held for the caller. */
export interface Picked {
  readonly collection: { readonly kind: string; readonly tenant: string };
  readonly key: string;
  readonly version: string;
}

export interface Documents {
  read(collection: Collection, keys: readonly string[]): Promise<Found>;
  /** All of a collection, in no order. */
  list(collection: Collection): Promise<Document[]>;
  /**
   * The documents that are due, those first that have been due longest. With `aheadMs`, also the documents that are due later than
   * that from now, behind the others: they were written before the clock was set back.
   */
  due(collection: Collection, limit: number, aheadMs?: number): Promise<Document[]>;
  /**
   * A page of a collection. A document that is written between two pages may move in the order `updated`, and come twice or not at
   * all; in the other orders every document comes once that was there all the time. Throws `invalid_request` for another cursor.
   */
  page(collection: ListedCollection, query: ListQuery): Promise<Page<ListedDocument>>;
  /** How many documents a collection has, and how many bytes their bodies. */
  size(collection: ListedCollection): Promise<{ readonly documents: number; readonly bytes: number }>;
  /** Deletes those that were created first, beyond what is to stay: up to `TRIMMED`. Returns how many. */
  trim(collection: ListedCollection, retention: Retention): Promise<number>;
  /**
   * Documents of this kind that are due (see `due`), in the collections of all tenants: up to `limit`, and up to `MAX_PICKED`. Tenants take turns,
   * and those come first that have waited longest for one; of a tenant those that have been due longest. They are due
   * again in `holdMs`, and until then no other call returns them. Use `claimDue`, which also fences their writers.
   */
  pick(kind: string, options: PickOptions): Promise<Picked[]>;
  /**
   * Writes all documents or none: `changed` when one of them is not at the version that was seen, `full` when the collection
   * would have more than `limit` documents, `large` when these would have more than `bytes` of bodies. `version` is new, and
   * becomes the version of everything that is written; a repeated call with it changes nothing more. Throws `not_found` when
   * the collection's thread does not exist.
   */
  write(
    collection: Collection,
    writes: readonly DocumentWrite[],
    options: {
      readonly version: string;
      readonly limit?: number | undefined;
      readonly bytes?: number | undefined;
    },
  ): Promise<"written" | "changed" | "full" | "large">;
}

export interface Change {
  readonly collection: Collection;
  readonly keys: readonly string[];
  /** Documents in the collection at most, and what one more is refused with. */
  readonly limit?: { readonly count: number; readonly error: () => AppError };
  /** Bytes of all bodies in the collection at most, and what a change that would exceed them is refused with. */
  readonly size?: { readonly bytes: number; readonly error: () => AppError };
}

interface Decision<T> {
  readonly writes?: readonly DocumentWrite[];
  readonly result: T;
}

/** Writes what `decide` returns for the stored documents; decides again whenever another writer was first. */
export async function change<T>(
  documents: Documents,
  { collection, keys, limit, size }: Change,
  decide: (read: Found & { version: string }) => Decision<T> | Promise<Decision<T>>,
): Promise<T> {
  for (;;) {
    const version = `v${randomId()}`;
    const { writes = [], result } = await decide({ ...(await documents.read(collection, keys)), version });
    if (writes.length === 0) return result;
    const most = { limit: limit?.count, bytes: size?.bytes };
    const outcome = await documents.write(collection, writes, { version, ...most });
    if (outcome === "written") return result;
    if (outcome === "full" && limit) throw limit.error();
    if (outcome === "large" && size) throw size.error();
  }
}

/** Deletes a document. False when there is none. */
export function remove(documents: Documents, collection: Collection, key: string): Promise<boolean> {
  return change(documents, { collection, keys: [key] }, ({ found: [document] }) =>
    document
      ? { writes: [{ key, seen: document.version, body: undefined }], result: true }
      : { result: false },
  );
}
