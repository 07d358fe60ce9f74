// The port to small documents: HTTP tools, API keys, sandboxes, and what agents keep beside threads. A store only keeps
// them and compares versions; the room that a document belongs to decides what may follow what, with `change`.

import { randomId } from "../../lib/random-id.ts";
import type { AppError } from "./errors.ts";
import type { Shelf } from "./items.ts";
import type { Page } from "./stores.ts";

/** Documents of one kind with one owner. Documents of a thread are deleted when it is cleared or deleted; all others stay until they are deleted. */
export type Collection = Shelf | ListedCollection;

/**
 * Documents that are listed in order: a user's (`{ kind, ...owner }`), a tenant's, or the deployment's. A kind consists of letters,
 * digits and `_`.
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

/** True for collections of tenants and users. Only their documents are picked when they are due, and counted in quotas. */
export const isOwned = (collection: Collection): collection is OwnedCollection =>
  !("of" in collection) && collection.tenant !== undefined;

export interface Document {
  readonly key: string;
  readonly body: string;
  /** Changes with every write and is never used again, also after a deletion. Compare it; it has no order. */
  readonly version: string;
}

export interface DocumentWrite {
  readonly key: string;
  /** The version that was read; undefined: there was no such document. */
  readonly seen: string | undefined;
  /** Undefined deletes the document. */
  readonly body: string | undefined;
  /**
   * Time from which `due` and `pick` return the document, in ms since 1970, rounded up. Every write sets it again: without `due` the
   * document is never due. No read returns it, so a document that needs it later has it in its body. `write` throws
   * `invalid_request` for a number that is no time.
   */
  readonly due?: number | null;
}

export interface DocumentSnapshot {
  /** In the order of the keys. */
  readonly found: readonly (Document | undefined)[];
  /** False when the collection's thread does not exist. */
  readonly exists: boolean;
  /** The store's clock, in ms since 1970. Times of documents are compared with it. */
  readonly now: number;
}

export interface ListedDocument extends Document {
  /** By the store's clock, in ms since 1970. */
  readonly created_at: number;
  /** Time of the last write. */
  readonly updated_at: number;
}

/**
 * `key`: in the order of their bytes. Keys of collections that are listed so consist of `A-Z a-z 0-9 - _ . : /`. `created` and
 * `updated`: newest first; documents of one millisecond by key, backwards.
 */
export type ListOrder = "key" | "created" | "updated";

export interface ListQuery {
  readonly order: ListOrder;
  /** How the keys begin; only with the order `key`. */
  readonly prefix?: string;
  /** Maximum number of documents in the page, at least 1. */
  readonly limit: number;
  /** `next_cursor` of the page before, of a query of the same order. With another prefix, the page has only keys of this one. */
  readonly cursor?: string | undefined;
  /** Key behind which the page begins; it need not exist. Only with the order `key`, and without a cursor. */
  readonly after?: string | undefined;
}

/** Documents to keep: those created within the last `ms`, and at most the newest `count`. */
export interface Retention {
  readonly ms?: number;
  readonly count?: number;
}

/** Maximum number of documents that one call of `trim` deletes. */
export const TRIMMED = 1_000;
/** Maximum number of documents that one call of `pick` returns. */
export const MAX_PICKED = 100;

export interface PickOptions {
  /** Maximum number of documents to return, up to `MAX_PICKED`. */
  readonly limit: number;
  /** Time until the documents are due again, in ms. */
  readonly holdMs: number;
  /** As for `due`. Leave it out for documents that may be due at any time. */
  readonly aheadMs?: number | undefined;
}

/** A document that is due, held for the caller. */
export interface Picked {
  readonly collection: OwnedCollection;
  readonly key: string;
  readonly version: string;
}

export interface Documents {
  read(collection: Collection, keys: readonly string[]): Promise<DocumentSnapshot>;
  /** All documents of a collection, in no order. */
  list(collection: Collection): Promise<Document[]>;
  /**
   * The documents that are due, in the order in which they became due. With `aheadMs`, also documents that are due later than that
   * from now, last: they were written before the clock was set back.
   */
  due(collection: Collection, limit: number, aheadMs?: number): Promise<Document[]>;
  /**
   * A page of a collection. In the orders `key` and `created`, the pages contain every document once that exists throughout. In the
   * order `updated`, a document that is written between two pages may be repeated or left out. Throws `invalid_request` for a cursor
   * of another list.
   */
  page(collection: ListedCollection, query: ListQuery): Promise<Page<ListedDocument>>;
  /** Number of documents in a collection, and bytes of all their bodies. */
  size(collection: ListedCollection): Promise<{ readonly documents: number; readonly bytes: number }>;
  /** Deletes the oldest documents that `retention` does not keep, up to `TRIMMED`. Returns how many it deleted. */
  trim(collection: ListedCollection, retention: Retention): Promise<number>;
  /**
   * Documents of a kind that are due, of all tenants and users. Tenants take turns, longest waiting first; within a tenant, the
   * document comes first that has been due longest. No other call returns them for `holdMs`; then they are due again. Shelves and
   * collections of the deployment are left out. Use `claimDue`, which also fences the documents' writers.
   */
  pick(kind: string, options: PickOptions): Promise<Picked[]>;
  /**
   * Writes all documents or none. Returns `changed` when a document is not at the version that was seen; `full` when the collection
   * would have more than `limit` documents; `large` when their bodies would have more than `bytes`. `version` is a `newVersion()`; a
   * repeated call with it changes nothing more. Throws `not_found` when the collection's thread does not exist.
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

/** A version for `write`, which becomes the version of every document that it writes. */
export const newVersion = () => `v${randomId()}`;

export interface Change {
  readonly collection: Collection;
  readonly keys: readonly string[];
  /** Maximum number of documents in the collection, and the error for one more. */
  readonly limit?: { readonly count: number; readonly error: () => AppError };
  /** Maximum bytes of all bodies in the collection, and the error for a change that would exceed them. */
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
  decide: (read: DocumentSnapshot & { version: string }) => Decision<T> | Promise<Decision<T>>,
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

/** Deletes a document. False when there is none. */
export function remove(documents: Documents, collection: Collection, key: string): Promise<boolean> {
  return change(documents, { collection, keys: [key] }, ({ found: [document] }) =>
    document
      ? { writes: [{ key, seen: document.version, body: undefined }], result: true }
      : { result: false },
  );
}

/** Deletes all documents that `retention` does not keep; `{ count: 0 }` deletes all. Returns how many. */
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
