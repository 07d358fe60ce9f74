// Documents in Redis: a hash for each collection, whose fields hold version and body, and a sorted set of what is due.
// Those of a thread lie in its slot and go with it. A body that was written before documents had versions stands alone.

import {
  type Collection,
  type Document,
  type Documents,
  type DocumentWrite,
  type ListedDocument,
  MAX_PICKED,
  type Picked,
  TRIMMED,
} from "../../core/documents.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { listedPage, placeOf, REFUSALS, roomFor, tenantOfTurns, threadIdOf } from "../document-rules.ts";
import { noSuchThread } from "../errors.ts";
import { LITTLE_BYTES } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import {
  addDocuments,
  changeDocuments,
  dueDocuments,
  listDocuments,
  OLD,
  pageOfDocuments,
  readDocuments,
  sizeOfDocuments,
  trimDocuments,
} from "./document-scripts.ts";
import { collectionKeys, DEDUPE_TTL_MS, documentTurns, tenantTag } from "./keys.ts";
import { createSchedule, type Schedule, type ScheduleEntry } from "./schedule.ts";

/** Behind all characters that the keys of lists are made of. */
const LAST_CHAR = "\x7f";

/** Of a list that is read beside other commands. */
const LITTLE_MANY = 256;

export function redisDocuments({
  redis,
  lifetime,
  owners,
}: Pick<StoreContext, "redis"> & Partial<Pick<StoreContext, "lifetime" | "owners">>): Documents {
  return {
    async read(collection, keys) {
      const names = keys.map((key) => nameOf(collection, key));
      const place = collectionKeys(collection);
      const few = await redis.run(readDocuments, place, { bytes: LITTLE_BYTES }, names);
      // Without a bound there is always an answer.
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
      // Without a bound there is always an answer.
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
      redis.run(trimDocuments, collectionKeys(collection), { ms, count, most: TRIMMED }),

    async pick(kind, { limit, holdMs, aheadMs }) {
      const schedule = createSchedule(redis, documentTurns(kind), { holdMs, ...omitUndefined({ aheadMs }) });
      const most = Math.min(limit, MAX_PICKED);
      const picked: Picked[] = [];
      while (picked.length < most) {
        const entries = await schedule.claim({ limit: most - picked.length, except: [] });
        if (entries.length === 0) break;
        // An entry may be stale: it is made before its document, and stays when that changes.
        const found = await Promise.all(entries.map((entry) => dueAt(kind, entry, { schedule, aheadMs })));
        picked.push(...found.flatMap((each) => each ?? []));
      }
      return picked;
    },

    async write(collection, writes, { version, ...bounds }) {
      const keys = collectionKeys(collection, version);
      const values = writes.flatMap(({ key, seen = "", body, due }) => [
        nameOf(collection, key),
        seen,
        body === undefined ? "" : `${version} ${body}`,
        String(due ?? ""),
      ]);
      const isNew = writes.some(({ seen, body }) => seen === undefined && body !== undefined);
      if (isNew && "of" in collection && "agent" in collection.of)
        await owners?.noteShelf(collection, collection.of.agent);
      const { documents = "", otherBytes = "" } = roomFor(writes, bounds);
      const listed = "of" in collection ? "" : "1";
      const args = { order: REFUSALS.join(" "), documents, bytes: otherBytes, asking: DEDUPE_TTL_MS, listed };
      await noteTurns(collection, writes);
      const run = redis.runFor(tenantOf(collection));
      const [outcome, life] = await run(isNew ? addDocuments : changeDocuments, keys, args, values);
      used(collection, life);
      if (outcome !== "none") return outcome;
      throw noSuchThread(threadIdOf(collection));
    },
  };

  /** What is due is found by those who pick documents, also if this process ends before it is written. */
  async function noteTurns(collection: Collection, writes: readonly DocumentWrite[]): Promise<void> {
    const tenant = tenantOfTurns(collection);
    const due = writes.flatMap(({ key, body, due: time }) =>
      body !== undefined && typeof time === "number" ? { key, time } : [],
    );
    if (tenant === undefined || due.length === 0) return;
    const schedule = createSchedule(redis, documentTurns(collection.kind), { holdMs: 0 });
    const now = await clock(collection);
    await Promise.all(
      due.map(({ key, time }) =>
        schedule.add(tenantTag({ tenant }), JSON.stringify([tenant, key]), Math.max(time - now, 0)),
      ),
    );
  }

  async function clock(collection: Collection): Promise<number> {
    const [, , now = 0] =
      (await redis.run(readDocuments, collectionKeys(collection), { bytes: "" }, [])) ?? [];
    return Number(now);
  }

  /** The document of an entry, if it is due. */
  async function dueAt(
    kind: string,
    entry: ScheduleEntry,
    { schedule, aheadMs = Number.POSITIVE_INFINITY }: { schedule: Schedule; aheadMs: number | undefined },
  ): Promise<Picked | undefined> {
    // `noteTurns` makes them.
    const [tenant, key] = JSON.parse(entry.thread) as [string, string];
    const collection = { kind, tenant };
    const places = collectionKeys(collection);
    const due = await redis.ask((client) => client.zscore(places.due, key));
    const [[text], , now] = (await redis.run(readDocuments, places, { bytes: "" }, [key])) ?? [[], "", 0];
    const document = documentOf(key, text ?? undefined);
    const [time, at] = [Number(due), Number(now)];
    if (due !== null && document && (time <= at || time > at + aheadMs))
      return { collection, key, version: document.version };
    await schedule.reschedule(entry, due === null ? undefined : Number(due));
    return undefined;
  }

  function used(collection: Collection, life: string): void {
    if ("of" in collection && "thread" in collection.of)
      lifetime?.used(collection.owner, collection.of.thread, life);
  }
}

/** Empty for what is the whole deployment's. */
const tenantOf = (collection: Collection) =>
  ("of" in collection ? collection.owner.tenant : collection.tenant) ?? "";

/** JSON keeps apart keys that are not Unicode; other collections choose their keys themselves. */
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

function documentOf(key: string, text: string | undefined): Document | undefined {
  if (text === undefined) return undefined;
  const [, version = OLD, body = text] = /^(v\w+) (.*)$/s.exec(text) ?? [];
  return { key, version, body };
}
