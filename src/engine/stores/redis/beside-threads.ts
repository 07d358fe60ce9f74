// Reads the data next to threads for the check of Redis: documents with a due time, and the sums of stored bytes.

import { setTimeout as sleep } from "node:timers/promises";
import type { Cluster, Redis } from "ioredis";
import type { OwnedCollection } from "../../../agent/core/documents.ts";
import { type DueDocument, isInTurn, type Sum } from "../check/facts.ts";
import { entryText, ofEntry } from "./document-schedule.ts";
import { collectionKeys, documentTurns, tenantTag } from "./keys.ts";

/** The number of members of a set or a hash to read at a time. */
const MEMBERS = 500;
/** The key pattern for all sets of documents with due times. */
export const DUE_SETS = "sk:{*}:due:*";
/** The key pattern for the stored bytes of all tenants. */
export const SUM_SETS = "sk:{*}:stored";
const DUE_DOCUMENTS = /^(sk:\{.+\}):due:(.+)$/;
/** The due set of a tenant's or a user's collection. The key contains the owner's tag and the kind. */
const OWNED = /^sk:\{[\w-]{22}\}:due:(?:documents:)?(?!records$)(\w+)$/;
/** The maximum number of milliseconds between two writes of a document. */
const WRITING_MS = 1_000;

/** The collections whose documents are picked in turns, by the keys of their due sets. */
type Collections = ReadonlyMap<string, OwnedCollection>;

/**
 * Yields the documents of all due sets that were due at `time` but do not exist or cannot be found by any process, page
 * by page.
 */
export async function* dueIn(
  redis: Redis | Cluster,
  sets: AsyncIterable<readonly string[]>,
  time: number,
): AsyncGenerator<DueDocument[]> {
  const kinds = new Map<string, Collections>();
  for await (const keys of sets)
    for (const set of keys) {
      const kind = OWNED.exec(set)?.[1];
      const known = kind === undefined ? undefined : (kinds.get(kind) ?? (await collectionsOf(redis, kind)));
      if (kind !== undefined && known) kinds.set(kind, known);
      for (let from = 0; ; from += MEMBERS) {
        const names = await redis.zrange(set, String(from), String(from + MEMBERS - 1));
        const page = await read(redis, set, names, known);
        const wrong = page.filter(isWrong);
        yield page.filter((each) => !isWrong(each) && each.due <= time);
        if (wrong.length > 0) {
          // A process may still be writing them.
          await sleep(WRITING_MS);
          const keysOf = wrong.map(({ key }) => key);
          const now = kind === undefined ? undefined : await collectionsOf(redis, kind);
          yield (await read(redis, set, keysOf, now)).filter(isWrong);
        }
        if (names.length < MEMBERS) break;
      }
    }
}

const isWrong = ({ exists, isFound }: DueDocument) => !exists || !isFound;

async function collectionsOf(redis: Redis | Cluster, kind: string): Promise<Collections> {
  const { tenants, threads } = documentTurns(kind);
  const found = new Map<string, OwnedCollection>();
  for (const tag of await redis.zrange(tenants, "0", "-1"))
    for (let from = 0; ; from += MEMBERS) {
      const entries = await redis.zrange(threads + tag, String(from), String(from + MEMBERS - 1));
      for (const entry of entries) {
        const { collection } = ofEntry(kind, entry);
        found.set(collectionKeys(collection).due, collection);
      }
      if (entries.length < MEMBERS) break;
    }
  return found;
}

async function read(
  redis: Redis | Cluster,
  set: string,
  keys: readonly string[],
  collections: Collections | undefined,
): Promise<DueDocument[]> {
  const found = await Promise.all(keys.map((key) => dueDocument(redis, set, key, collections)));
  return found.flatMap((each) => each ?? []);
}

/**
 * Returns undefined if the document is no longer due. If `collections` is undefined, no turn is needed to find the
 * document.
 */
async function dueDocument(
  redis: Redis | Cluster,
  set: string,
  key: string,
  collections: Collections | undefined,
): Promise<DueDocument | undefined> {
  const [, place = "", name = ""] = DUE_DOCUMENTS.exec(set) ?? [];
  const exists = (await redis.hexists(`${place}:${name}`, key)) === 1;
  const collection = collections?.get(set);
  const turn = collection ? await turnOf(redis, collection, key) : null;
  // The due time is read last, because processes remove it before they remove the document's turn.
  const score = await redis.zscore(set, key);
  if (score === null) return undefined;
  const due = Number(score);
  const isFound = collections === undefined || isInTurn(due, turn, Date.now());
  return { collection: `${place}:${name}`, key, due, exists, isFound };
}

/** Returns the time at which a process looks for the document, or null if none ever does. */
async function turnOf(
  redis: Redis | Cluster,
  collection: OwnedCollection,
  key: string,
): Promise<number | null> {
  const turns = documentTurns(collection.kind).threads + tenantTag(collection);
  const time = await redis.zscore(turns, entryText(collection, key));
  return time === null ? null : Number(time);
}

/** Returns the sums of a tenant and its users, by their tags. */
export async function sumsIn(redis: Redis | Cluster, key: string): Promise<Sum[]> {
  const recorded = new Map<string, number>();
  const counted = new Map<string, number>();
  for (let cursor = "0"; ; ) {
    const [next, found] = await redis.hscan(key, cursor, "COUNT", MEMBERS);
    for (let at = 0; at < found.length; at += 2) {
      const [field = "", value = "0"] = found.slice(at, at + 2);
      const [, kind, user = ""] = /^(sum|id):(\S*)/.exec(field) ?? [];
      const sums = kind === "sum" ? recorded : counted;
      for (const name of kind === "sum" ? [user] : ["", user])
        sums.set(name, (sums.get(name) ?? 0) + Number(value));
    }
    cursor = next;
    if (cursor === "0") break;
  }
  return [...new Set([...recorded.keys(), ...counted.keys()])].map((user) => ({
    name: user === "" ? key : `${key} of user ${user}`,
    recorded: recorded.get(user) ?? 0,
    counted: counted.get(user) ?? 0,
  }));
}
