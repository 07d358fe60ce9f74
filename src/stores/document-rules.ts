// When documents may be written, once for every store.

import type { Collection, Documents, DocumentWrite } from "../core/documents.ts";

/** What a write is refused for. Of several the first one is the answer. */
export const REFUSALS = ["none", "changed", "full", "large"] as const;
export type Refusal = (typeof REFUSALS)[number];

export type Bounds = Omit<Parameters<Documents["write"]>[2], "version">;

/** What there may be before the writes; undefined: any number. */
export interface Room {
  /** Documents in the collection. */
  readonly documents: number | undefined;
  /** Bytes of the bodies of all documents that are not written. */
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

/** A collection before it is written to. The numbers are only asked for when they decide. */
export interface Collected {
  /** False when its thread does not exist. */
  readonly exists: boolean;
  /** The versions of the documents to write, in their order. */
  readonly versions: readonly (string | undefined)[];
  documents(): number;
  otherBytes(): number;
}

/** Why the writes are refused, if they are. */
export function refusalOf(
  writes: readonly DocumentWrite[],
  bounds: Bounds,
  { exists, versions, documents, otherBytes }: Collected,
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

/** The thread that a collection belongs to; empty for the others. */
export const threadIdOf = (collection: Collection): string =>
  "of" in collection && "thread" in collection.of ? collection.of.thread : "";
