// Decides when documents can be written, and in which order they are listed and picked. The rules are the same for
// every store.

import type {
  Collection,
  Documents,
  DocumentWrite,
  ListedDocument,
  ListOrder,
  ListQuery,
} from "../../agent/core/documents.ts";
import { AppError } from "../../agent/core/errors.ts";
import type { Page } from "../../agent/core/stores.ts";
import { badCursor, decodePosition, encodePosition, pageOf } from "./page.ts";

/** The reasons to refuse a write. If several apply, the first one is returned. */
export const REFUSALS = ["none", "changed", "full", "large"] as const;
export type Refusal = (typeof REFUSALS)[number];

export type Bounds = Omit<Parameters<Documents["write"]>[2], "version">;

/** The limits that are checked before the writes. Undefined means unlimited. */
export interface Room {
  /** The number of documents in the collection. */
  readonly documents: number | undefined;
  /** The size in bytes of all documents that are not written. */
  readonly otherBytes: number | undefined;
}

export function roomFor(writes: readonly DocumentWrite[], { limit, bytes }: Bounds): Room {
  const added = writes.filter(({ seen, body }) => seen === undefined && body !== undefined).length;
  const written = writes.reduce((sum, { body = "" }) => sum + Buffer.byteLength(body), 0);
  return {
    documents: limit === undefined || added === 0 ? undefined : limit - added,
    otherBytes: bytes === undefined ? undefined : bytes - written,
  };
}

/** The latest possible date, in milliseconds since 1970. */
const LATEST = 8.64e15;

/**
 * Returns when the written document is due, in whole milliseconds; null means never. Throws `invalid_request` for an
 * invalid time.
 */
export function dueOf({ body, due = null }: DocumentWrite): number | null {
  if (body === undefined || due === null) return null;
  if (Math.abs(due) <= LATEST) return Math.ceil(due);
  throw new AppError(
    "invalid_request",
    `\`due\` is ${due}. It must be a time in milliseconds since 1970, or null.`,
  );
}

/** A collection before a write. The numbers are computed only if the decision needs them. */
export interface CollectionState {
  /** False if its thread does not exist. */
  readonly exists: boolean;
  /** The versions of the documents to write, in the same order. */
  readonly versions: readonly (string | undefined)[];
  documents(): number;
  otherBytes(): number;
}

/** Returns the reason why the writes are refused, or undefined if they are not. */
export function refusalOf(
  writes: readonly DocumentWrite[],
  bounds: Bounds,
  { exists, versions, documents, otherBytes }: CollectionState,
): Refusal | undefined {
  const room = roomFor(writes, bounds);
  const holds: Readonly<Record<Refusal, () => boolean>> = {
    none: () => !exists,
    changed: () => writes.some(({ seen }, at) => versions[at] !== seen),
    full: () => room.documents !== undefined && documents() > room.documents,
    large: () => room.otherBytes !== undefined && otherBytes() > room.otherBytes,
  };
  return REFUSALS.find((refusal) => holds[refusal]());
}

/** The position at which a page begins: after a key, or after a time and a key. */
export interface ListPosition {
  readonly time: number;
  readonly key: string;
}

/**
 * Returns undefined for the first page, or for a position before all keys with the prefix. Throws `invalid_request`.
 */
export function placeOf(query: ListQuery): ListPosition | undefined {
  const { order, prefix = "" } = query;
  const place = askedPlaceOf(query);
  return place && order === "key" && place.key < prefix ? undefined : place;
}

function askedPlaceOf({ order, cursor, after }: ListQuery): ListPosition | undefined {
  if (cursor === undefined) return after === undefined ? undefined : { time: 0, key: after };
  const { updatedAt: time, id } = decodePosition(cursor);
  if (!id.startsWith(`${order} `)) throw badCursor(cursor);
  return { time, key: id.slice(order.length + 1) };
}

/** Returns the position of a document in a list of this order. */
const placeIn = (order: ListOrder, document: ListedDocument): ListPosition => ({
  time: order === "key" ? 0 : document[`${order}_at`],
  key: document.key,
});

/** Returns true if the document comes after the position in this order. */
export function standsAfter(order: ListOrder, place: ListPosition, document: ListedDocument): boolean {
  if (order === "key") return document.key > place.key;
  const { time, key } = placeIn(order, document);
  return time < place.time || (time === place.time && key < place.key);
}

/** Compares two documents for a list of this order. */
export const inOrder = (order: ListOrder) => (a: ListedDocument, b: ListedDocument) =>
  standsAfter(order, placeIn(order, a), b) ? -1 : 1;

/** Returns true if a document with this due time is due; see `Documents.due`. Infinity is never due. */
export const isDueAt = (now: number, aheadMs: number, time: number): boolean =>
  time <= now || (time > now + aheadMs && time < Number.POSITIVE_INFINITY);

/** Expects one more document than the limit if there is another page. */
export const listedPage = (
  found: readonly ListedDocument[],
  { order, limit }: ListQuery,
): Page<ListedDocument> =>
  pageOf(found, limit, (last) =>
    encodePosition({ updatedAt: placeIn(order, last).time, id: `${order} ${last.key}` }),
  );

/** Takes one document per tenant in order, and repeats this until there are `limit` documents. */
export function inTurn<T>(ofTenants: readonly (readonly T[])[], limit: number): T[] {
  const picked: T[] = [];
  for (let round = 0; picked.length < limit; round++) {
    const next = ofTenants.flatMap((of) => of.slice(round, round + 1));
    if (next.length === 0) break;
    picked.push(...next.slice(0, limit - picked.length));
  }
  return picked;
}

/** Returns the id of a shelf's thread, or an empty string for other collections. */
export const threadIdOf = (collection: Collection): string =>
  "of" in collection && "thread" in collection.of ? collection.of.thread : "";
