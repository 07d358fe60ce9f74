// Documents in Redis. Each collection has a hash with the version and body of each document, and a sorted set of due
// times. A thread's documents are in its slot and expire with it.

import {
  type Collection,
  type Document,
  type Documents,
  type ListedDocument,
  TRIMMED,
} from "../../../agent/core/documents.ts";
import { randomId } from "../../../lib/random-id.ts";
import { dueOf, listedPage, placeOf, REFUSALS, roomFor, threadIdOf } from "../document-rules.ts";
import { noSuchThread } from "../errors.ts";
import { LITTLE_BYTES } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { redisSchedule } from "./document-schedule.ts";
import {
  addDocuments,
  changeDocuments,
  documentOf,
  dueDocuments,
  listDocuments,
  pageOfDocuments,
  readDocuments,
  sizeOfDocuments,
  trimDocuments,
} from "./document-scripts.ts";
import { collectionKeys, DEDUPE_TTL_MS } from "./keys.ts";

/** Sorts after all characters that occur in list keys. */
const LAST_CHAR = "\x7f";

/** The maximum number of documents in a list that is read between other commands. */
const LITTLE_MANY = 256;

export function redisDocuments({
  redis,
  retention,
  owners,
}: Pick<StoreContext, "redis"> & Partial<Pick<StoreContext, "retention" | "owners">>): Documents {
  const schedule = redisSchedule({ redis });

  return {
    async read(collection, keys) {
      const names = keys.map((key) => nameOf(collection, key));
      const place = collectionKeys(collection);
      const few = await redis.run(readDocuments, place, { bytes: LITTLE_BYTES }, names);
      // The script always returns the documents if there is no limit on their bytes.
      const all =
        few ?? (await redis.runBulk(tenantOf(collection))(readDocuments, place, { bytes: "" }, names));
      const [texts = [], life = "", now = 0] = all ?? [];
      used(collection, life);
      const found = keys.map((key, at) => documentOf(key, texts[at] ?? undefined));
      return { found, exists: !life.startsWith("-2"), now: Number(now) };
    },

    async list(collection) {
      const place = collectionKeys(collection);
      const bounds = { most: LITTLE_MANY, bytes: LITTLE_BYTES };
      const few = await redis.run(listDocuments, place, bounds);
      // The script always returns the documents if there is no limit on their bytes.
      const all =
        few ?? (await redis.runBulk(tenantOf(collection))(listDocuments, place, { most: "", bytes: "" }));
      const [found = [], life = ""] = all ?? [];
      used(collection, life);
      return documentsOf(collection, found);
    },

    async due(collection, limit, aheadMs) {
      const args = { limit, ahead: aheadMs ?? "" };
      const found = await redis.run(dueDocuments, collectionKeys(collection), args);
      return documentsOf(collection, found);
    },

    async page(collection, query) {
      const { order, prefix = "", limit } = query;
      const place = placeOf(query);
      const range =
        order === "key"
          ? { from: place ? `(${place.key}` : `[${prefix}`, to: `(${prefix}${LAST_CHAR}` }
          : { from: place?.time ?? "", to: place?.key ?? "" };
      const args = { order, ...range, limit: limit + 1 };
      const found = await redis.runBulk(tenantOf(collection))(
        pageOfDocuments,
        collectionKeys(collection),
        args,
      );
      const documents: ListedDocument[] = [];
      for (let at = 0; at < found.length; at += 4) {
        const [key = "", text, created, updated] = found.slice(at, at + 4);
        const document = documentOf(key, text);
        if (document)
          documents.push({ ...document, created_at: Number(created), updated_at: Number(updated) });
      }
      return listedPage(documents, query);
    },

    async size(collection) {
      const { items } = collectionKeys(collection);
      const [documents, bytes] = await redis.run(sizeOfDocuments, { items }, {});
      return { documents, bytes };
    },

    trim: (collection, { ms = "", count = "" }) =>
      redis.run(trimDocuments, collectionKeys(collection, randomId()), {
        ...{ ms, count, most: TRIMMED },
        asking: DEDUPE_TTL_MS,
      }),

    pick: schedule.pick,

    async write(collection, writes, { version, ...bounds }) {
      const keys = collectionKeys(collection, version);
      const values = writes.flatMap((write) => [
        nameOf(collection, write.key),
        write.seen ?? "",
        write.body === undefined ? "" : `${version} ${write.body}`,
        String(dueOf(write) ?? ""),
      ]);
      const isNew = writes.some(({ seen, body }) => seen === undefined && body !== undefined);
      if (isNew && "of" in collection && "agent" in collection.of)
        await owners?.noteShelf(collection, collection.of.agent);
      const { documents = "", otherBytes = "" } = roomFor(writes, bounds);
      const listed = "of" in collection ? "" : "1";
      const args = { order: REFUSALS.join(" "), documents, bytes: otherBytes, asking: DEDUPE_TTL_MS, listed };
      const note = await schedule.noted(collection, writes);
      const run = redis.runFor(tenantOf(collection));
      const [outcome, life] = await run(isNew ? addDocuments : changeDocuments, keys, args, values);
      used(collection, life);
      if (outcome === "written") await note();
      if (outcome !== "none") return outcome;
      throw noSuchThread(threadIdOf(collection));
    },
  };

  function used(collection: Collection, life: string): void {
    if ("of" in collection && "thread" in collection.of)
      retention?.used(collection.owner, collection.of.thread, life);
  }
}

/** Returns an empty string for collections of the deployment. */
const tenantOf = (collection: Collection) =>
  ("of" in collection ? collection.owner.tenant : collection.tenant) ?? "";

/**
 * Keys are stored as JSON, so that keys that are not valid Unicode stay distinct. The keys of other collections need no
 * encoding, because the server chooses their form.
 */
const nameOf = (collection: Collection, key: string) => ("of" in collection ? JSON.stringify(key) : key);

function documentsOf(collection: Collection, found: readonly string[]): Document[] {
  const documents: Document[] = [];
  for (let at = 0; at < found.length; at += 2) {
    const name = found[at] ?? "";
    const key = "of" in collection ? (JSON.parse(name) as string) : name;
    const document = documentOf(key, found[at + 1] || undefined);
    if (document) documents.push(document);
  }
  return documents;
}
