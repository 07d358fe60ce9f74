// The documents port in memory.

import {
  type Documents,
  type DocumentWrite,
  type ListedDocument,
  TRIMMED,
} from "../../../agent/core/documents.ts";
import type { Shelf } from "../../../agent/core/items.ts";
import type { Owner } from "../../../protocol/ids.ts";
import {
  dueOf,
  inOrder,
  isDueAt,
  listedPage,
  placeOf,
  refusalOf,
  standsAfter,
  threadIdOf,
} from "../document-rules.ts";
import { noSuchThread } from "../errors.ts";
import { memoryCollections } from "./collections.ts";
import { byDue, memorySchedule } from "./document-schedule.ts";
import type { MemoryThreads } from "./memory-threads.ts";
import { type DocumentEntry, type Items, weightOf } from "./records.ts";

/** The approximate size in bytes of a document in addition to its text. */
const DOCUMENT_BYTES = 200;

export interface MemoryDocuments extends Documents {
  /** Returns the shelves of the owner's agents. */
  shelves(owner: Owner): Shelf[];
}

export function memoryDocuments(memory: MemoryThreads): MemoryDocuments {
  const collections = memoryCollections(memory);
  const { itemsOf, keep, threadOf, shelves } = collections;
  const schedule = memorySchedule(collections, memory.limits);

  return {
    shelves,

    async read(collection, keys) {
      const items = itemsOf(collection);
      return {
        found: keys.map((key) => items?.get(key)),
        exists: items !== undefined,
        now: memory.limits.now(),
      };
    },

    async list(collection) {
      return [...(itemsOf(collection)?.values() ?? [])];
    },

    async due(collection, limit, aheadMs = Number.POSITIVE_INFINITY) {
      const now = memory.limits.now();
      return [...(itemsOf(collection)?.values() ?? [])]
        .filter(({ due }) => isDueAt(now, aheadMs, due))
        .sort(byDue)
        .slice(0, limit);
    },

    async page(collection, query) {
      const place = placeOf(query);
      const { order, prefix = "", limit } = query;
      const all = [...(itemsOf(collection)?.values() ?? [])]
        .filter(({ key }) => order !== "key" || key.startsWith(prefix))
        .filter((each) => !place || standsAfter(order, place, each))
        .sort(inOrder(order));
      return listedPage(
        all.slice(0, limit + 1).map(({ due: _, bytes: __, ...document }) => document),
        query,
      );
    },

    async size(collection) {
      const items = itemsOf(collection) ?? new Map();
      return { documents: items.size, bytes: bytesOfOthers(items, []) };
    },

    async trim(collection, { ms = Number.POSITIVE_INFINITY, count = Number.POSITIVE_INFINITY }) {
      const items = itemsOf(collection);
      if (!items) return 0;
      const oldest = memory.limits.now() - ms;
      const newestFirst = [...items.values()].sort(inOrder("created"));
      const gone = newestFirst
        .filter(({ created_at }, at) => at >= count || created_at < oldest)
        .slice(-TRIMMED);
      for (const { key } of gone) items.delete(key);
      keep(collection, items);
      return gone.length;
    },

    pick: schedule.pick,

    async write(collection, writes, { version, ...bounds }) {
      const dues = writes.map(dueOf);
      const items = itemsOf(collection);
      const refused = refusalOf(writes, bounds, {
        exists: items !== undefined,
        versions: writes.map(({ key }) => items?.get(key)?.version),
        documents: () => items?.size ?? 0,
        otherBytes: () => bytesOfOthers(items, writes),
      });
      if (!items || refused === "none") throw noSuchThread(threadIdOf(collection));
      if (refused) return refused;
      const thread = threadOf(collection);
      if (thread && writes.some(({ body }) => body !== undefined))
        memory.makeRoom(thread.owner.tenant, thread);
      const before = thread ? weightOf(items) : 0;
      const now = memory.limits.now();
      for (const [at, { key, body }] of writes.entries()) {
        const created_at = items.get(key)?.created_at ?? now;
        const due = dues[at] ?? Number.POSITIVE_INFINITY;
        if (body === undefined) items.delete(key);
        else {
          items.set(key, entryOf({ key, body, version, created_at, updated_at: now }, due));
        }
      }
      keep(collection, items);
      for (const [at, { key }] of writes.entries()) schedule.add(collection, key, dues[at] ?? null);
      if (thread) memory.weigh(thread, weightOf(items) - before);
      return "written";
    },
  };
}

/** Returns the size in bytes of the documents that are not written. */
function bytesOfOthers(items: Items = new Map(), writes: readonly DocumentWrite[]): number {
  const written = new Set(writes.map(({ key }) => key));
  let bytes = 0;
  for (const { key, body } of items.values()) if (!written.has(key)) bytes += Buffer.byteLength(body);
  return bytes;
}

function entryOf(document: ListedDocument, due: number): DocumentEntry {
  const bytes = DOCUMENT_BYTES + Buffer.byteLength(document.key) + Buffer.byteLength(document.body);
  return { ...document, due, bytes };
}
