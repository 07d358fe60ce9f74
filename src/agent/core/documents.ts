// The port to small documents: HTTP tools, API keys, sandboxes, and data that agents keep outside threads. A store only saves
// documents and compares versions. The owner of a document kind validates its changes with `change`.

import { randomId } from "../../lib/random-id.ts";
import type { AppError } from "./errors.ts";
import type { Shelf } from "./items.ts";
import type { Page } from "./stores.ts";

/**
 * Documents of one kind with one owner. Clearing or deleting a thread deletes its documents. All other documents remain until they are deleted explicitly.
 */
export type Collection = Shelf | ListedCollection;

/**
 * Documents listed in order. They belong to a user (`{ kind, ...owner }`), to a tenant, or to the deployment.
 * A kind consists of letters, digits and `_`.
 */
export type ListedCollection =
  | { readonly kind: string; readonly tenant?: string; readonly user?: never }
  | OwnedCollection;

/** A tenant's collection or, with `user`, a user's. Collections of different users never share a document. */
export interface OwnedCollection {
  readonly kind: string;
  readonly tenant: string;
  readonly user?: string;
}

/**
 * True for collections of tenants and users. Only documents in these collections are picked when they are due
 * and count towards quotas.
 */
export const isOwned = (collection: Collection): collection is OwnedCollection =>
  !("of" in collection) && collection.tenant !== undefined;

export interface Document {
  readonly key: string;
  readonly body: string;
  /**
   * Changes with every write, and is never reused, even after a deletion. Compare versions only for equality.
   */
  readonly version: string;
}

export interface DocumentWrite {
  readonly key: string;
  /** The version that the caller read, or undefined if the document did not exist. */
  readonly seen: string | undefined;
  /** Undefined deletes the document. */
  readonly body: string | undefined;
  /**
   * The time from which `due` and `pick` return the document, in ms since 1970, rounded up. Every write sets
   * this time again. A document written without `due` is never due. No read returns this value, so store it
   * in the body if you need it later. `write` throws `invalid_request` for an invalid time.
   */
  readonly due?: number | null;
}

export interface DocumentSnapshot {
  /** In the order of the requested keys. */
  readonly found: readonly (Document | undefined)[];
  /** False when the collection's thread does not exist. */
  readonly exists: boolean;
  /** The store's clock, in ms since 1970. The store compares all times of documents with it. */
  readonly now: number;
}

export interface ListedDocument extends Document {
  /** The time of creation by the store's clock, in ms since 1970. */
  readonly created_at: number;
  /** The time of the last write, in ms since 1970. */
  readonly updated_at: number;
}

/**
 * `key`: sorted by the bytes of the keys, which may contain only `A-Z a-z 0-9 - _ . : /`. `created` and
 * `updated`: newest first, with documents of the same millisecond sorted by descending key.
 */
export type ListOrder = "key" | "created" | "updated";

export interface ListQuery {
  readonly order: ListOrder;
  /** The prefix of the keys. Can be used only with the order `key`. */
  readonly prefix?: string;
  /** The maximum number of documents in the page, at least 1. */
  readonly limit: number;
  /**
   * The `next_cursor` of the previous page, from a query in the same order. The current `prefix` applies even
   * if it has changed.
   */
  readonly cursor?: string | undefined;
  /**
   * The key after which the page starts. It does not have to exist. Can be used only with the order `key` and
   * without a cursor.
   */
  readonly after?: string | undefined;
}

/**
 * Specifies which documents to keep: the documents created within the last `ms`, and at most the newest
 * `count`.
 */
export interface Retention {
  readonly ms?: number;
  readonly count?: number;
}

/** The maximum number of documents that one call of `trim` deletes. */
export const TRIMMED = 1_000;
/** The maximum number of documents that one call of `pick` returns. */
export const MAX_PICKED = 100;

export interface PickOptions {
  /** The maximum number of documents to return, up to `MAX_PICKED`. */
  readonly limit: number;
  /** The time until the documents are due again, in ms. */
  readonly holdMs: number;
  /** Has the same meaning as in `due`. Omit it for documents that may be due at any time. */
  readonly aheadMs?: number | undefined;
}

/** A due document that is reserved for the caller. */
export interface PickedDocument {
  readonly collection: OwnedCollection;
  readonly key: string;
  readonly version: string;
}

export interface Documents {
  read(collection: Collection, keys: readonly string[]): Promise<DocumentSnapshot>;
  /** Returns all documents of a collection, in no particular order. */
  list(collection: Collection): Promise<Document[]>;
  /**
   * Returns due documents, starting with the document that has been due for the longest time. With `aheadMs`,
   * the result ends with documents that are due more than `aheadMs` from now, because the clock was set back
   * after they were written.
   */
  due(collection: Collection, limit: number, aheadMs?: number): Promise<Document[]>;
  /**
   * Returns a page of a collection. In the orders `key` and `created`, the pages contain each document
   * exactly once if it exists during the whole listing. In the order `updated`, a document written between
   * two pages may appear twice or not at all. Throws `invalid_request` for a cursor from another list.
   */
  page(collection: ListedCollection, query: ListQuery): Promise<Page<ListedDocument>>;
  /** Returns the number of documents in a collection and the total bytes of their bodies. */
  size(collection: ListedCollection): Promise<{ readonly documents: number; readonly bytes: number }>;
  /** Deletes the oldest documents beyond `retention`, at most `TRIMMED`. Returns how many it deleted. */
  trim(collection: ListedCollection, retention: Retention): Promise<number>;
  /**
   * Returns due documents of a kind from all tenants and users. Tenants take turns, and the longest-waiting tenant comes first. Within a tenant, the longest due document comes first. No other call returns
   * these documents for `holdMs`. Then they are due again. Shelves and collections of the deployment are
   * excluded. Prefer `claimDue`, which also fences writers.
   */
  pick(kind: string, options: PickOptions): Promise<PickedDocument[]>;
  /**
   * Writes all documents or none. Returns `changed` if a document is not at the version that was read. Returns `full` if the collection would exceed `limit` documents, and `large` if their bodies would exceed `bytes`. Create `version` with `newVersion()`. Repeating a call with the same `version` has no further
   * effect. Throws `not_found` when the collection's thread does not exist.
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

/** Creates a version for `write`, which assigns it to every document it writes. */
export const newVersion = () => `v${randomId()}`;

export interface DocumentChange {
  readonly collection: Collection;
  readonly keys: readonly string[];
  /** The maximum number of documents in the collection, and the error to throw if a change would exceed it. */
  readonly limit?: { readonly count: number; readonly error: () => AppError };
  /**
   * The maximum number of bytes of all bodies in the collection, and the error to throw for a change that
   * would exceed them.
   */
  readonly size?: { readonly bytes: number; readonly error: () => AppError };
}

interface DocumentDecision<T> {
  readonly writes?: readonly DocumentWrite[];
  readonly result: T;
}

/**
 * Writes what `decide` returns for the stored documents. Calls `decide` again if another writer changed the
 * documents first.
 */
export async function change<T>(
  documents: Documents,
  { collection, keys, limit, size }: DocumentChange,
  decide: (
    read: DocumentSnapshot & { version: string },
  ) => DocumentDecision<T> | Promise<DocumentDecision<T>>,
): Promise<T> {
  for (;;) {
    const version = newVersion();
    const { writes = [], result } = await decide({ ...(await documents.read(collection, keys)), version });
    if (writes.length === 0) return result;
    const most = { limit: limit?.count, bytes: size?.bytes };
    const outcome = await documents.write(collection, writes, { version, ...most });
    if (outcome === "written") return result;
    if (outcome === "full" && limit) throw limit.error();
    if (outcome === "large" && size) throw size.error();
  }
}

/** Deletes a document. Returns false if it does not exist. */
export async function remove(documents: Documents, collection: Collection, key: string): Promise<boolean> {
  return (await take(documents, collection, key)) !== undefined;
}

/** Deletes a document and returns its last state, or undefined if it does not exist. */
export function take(
  documents: Documents,
  collection: Collection,
  key: string,
): Promise<Document | undefined> {
  return change(documents, { collection, keys: [key] }, ({ found: [document] }) => ({
    writes: document ? [{ key, seen: document.version, body: undefined }] : [],
    result: document,
  }));
}

/**
 * Deletes all documents beyond `retention` and returns how many it deleted. `{ count: 0 }` deletes all
 * documents.
 */
export async function retain(
  documents: Documents,
  collection: ListedCollection,
  retention: Retention,
  signal?: AbortSignal,
): Promise<number> {
  for (let deleted = 0; ; ) {
    signal?.throwIfAborted();
    const count = await documents.trim(collection, retention);
    deleted += count;
    if (count < TRIMMED) return deleted;
  }
}
