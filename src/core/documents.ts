// The port to small documents: HTTP tools, API keys, sandboxes, and what agents keep beside threads. A store only keeps
// them and compares versions; the room that a document belongs to decides what may follow what, with `change`.

import { randomId } from "../lib/random-id.ts";
import type { AppError } from "./errors.ts";
import type { Shelf } from "./items.ts";

/** The documents of a shelf, of a tenant, or of the whole deployment. Those of a thread are deleted with it. */
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
