// Documents in Redis: a hash for each collection, whose fields hold version and body, and a sorted set of what is due.
// Those of a thread lie in its slot and go with it. A body that was written before documents had versions stands alone.

import type { Collection, Document, Documents } from "../../core/documents.ts";
import { REFUSALS, type Refusal, roomFor, threadIdOf } from "../document-rules.ts";
import { noSuchThread } from "../errors.ts";
import { LITTLE_BYTES, script } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { collectionKeys, DEDUPE_TTL_MS } from "./keys.ts";

/** The version of a body that has none. */
const OLD = "old";

/** `life()`: how long the collection's thread still stays, in ms (-1: no limit, -2: no thread), and its outcome. */
const LIFE = `
local function life()
  if meta == items then return '-1' end
  return redis.call('PTTL', meta) .. ' ' .. (redis.call('HGET', meta, 'outcome') or '')
end`;

/** Of a list that is read beside other commands. */
const LITTLE_MANY = 256;

/** Nothing when the documents have more than `bytes`, if that is not empty. */
const readDocuments = script<[found: (string | null)[], life: string, now: string] | null>()({
  kind: "reads",
  keys: ["items", "meta"],
  args: ["bytes"],
  lua: `${LIFE}
if bytes ~= '' then
  local left = tonumber(bytes)
  for at = REST, #ARGV do left = left - redis.call('HSTRLEN', items, ARGV[at]) end
  if left < 0 then return false end
end
local found = {}
for at = REST, #ARGV do found[#found + 1] = redis.call('HGET', items, ARGV[at]) end
return { found, life(), string.format('%.0f', time()) }`,
});

/** Key, text, key, text …; nothing when there are more than `most` or they have more than `bytes`, if that is not empty. */
const listDocuments = script<[found: string[], life: string] | null>()({
  kind: "reads",
  keys: ["items", "meta"],
  args: ["most", "bytes"],
  lua: `${LIFE}
if bytes ~= '' then
  if redis.call('HLEN', items) > tonumber(most) then return false end
  local left = tonumber(bytes)
  for _, key in ipairs(redis.call('HKEYS', items)) do left = left - redis.call('HSTRLEN', items, key) end
  if left < 0 then return false end
end
return { redis.call('HGETALL', items), life() }`,
});

const dueDocuments = script<string[]>()({
  kind: "reads",
  keys: ["items", "due"],
  args: ["limit", "ahead"],
  lua: `
local now, found = time(), {}
local function add(from, to)
  local left = limit - #found / 2
  for _, key in ipairs(redis.call('ZRANGE', due, from, to, 'BYSCORE', 'LIMIT', 0, left)) do
    found[#found + 1] = key
    found[#found + 1] = redis.call('HGET', items, key) or ''
  end
end
add('-inf', string.format('%.0f', now))
if ahead ~= '' then add('(' .. string.format('%.0f', now + ahead), '+inf') end
return found`,
});

/**
 * Writes nothing when one of the refusals in `order` applies, and returns the first that does. `documents` and `bytes` limit
 * what may be there already: how many documents, and how many bytes of those that are not written. The unnamed arguments are,
 * for each document, its key, the version seen, its new text and when it is due; no text deletes it. A repeated call gets the
 * same answer.
 */
const definition = {
  keys: ["items", "due", "meta", "done"],
  args: ["order", "documents", "bytes", "asking"],
  lua: `${LIFE}
local function size(text) return #text - #(string.match(text, '^v%w+ ') or '') end
local function version_of(text) return string.match(text, '^(v%w+) ') or '${OLD}' end
local holds = {}
function holds.none() return meta ~= items and redis.call('EXISTS', meta) == 0 end
function holds.changed()
  for at = REST, #ARGV, 4 do
    local text = redis.call('HGET', items, ARGV[at])
    if (text and version_of(text) or '') ~= ARGV[at + 1] then return true end
  end
end
function holds.full() return documents ~= '' and redis.call('HLEN', items) > tonumber(documents) end
function holds.large()
  if bytes == '' then return false end
  local sum = 0
  for _, text in ipairs(redis.call('HVALS', items)) do sum = sum + size(text) end
  for at = REST, #ARGV, 4 do sum = sum - size(redis.call('HGET', items, ARGV[at]) or '') end
  return sum > tonumber(bytes)
end
if redis.call('EXISTS', done) == 1 then return { 'written', life() } end
for refusal in string.gmatch(order, '%a+') do
  if holds[refusal]() then return { refusal, life() } end
end
for at = REST, #ARGV, 4 do
  if ARGV[at + 2] == '' then redis.call('HDEL', items, ARGV[at]) else redis.call('HSET', items, ARGV[at], ARGV[at + 2]) end
  if ARGV[at + 3] == '' then redis.call('ZREM', due, ARGV[at]) else redis.call('ZADD', due, ARGV[at + 3], ARGV[at]) end
end
redis.call('SET', done, '', 'PX', asking)
if meta ~= items then
  local left = redis.call('PTTL', meta)
  if left >= 0 then redis.call('PEXPIRE', items, left) end
end
return { 'written', life() }`,
} as const;

type WriteReply = [outcome: "written" | Refusal, life: string];
/** A full Redis refuses new documents, but accepts changes of existing ones. */
const addDocuments = script<WriteReply>()({ kind: "adds", ...definition });
const changeDocuments = script<WriteReply>()({ kind: "always", ...definition });

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
      const args = { order: REFUSALS.join(" "), documents, bytes: otherBytes, asking: DEDUPE_TTL_MS };
      const run = redis.runFor(tenantOf(collection));
      const [outcome, life] = await run(isNew ? addDocuments : changeDocuments, keys, args, values);
      used(collection, life);
      if (outcome !== "none") return outcome;
      throw noSuchThread(threadIdOf(collection));
    },
  };

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
