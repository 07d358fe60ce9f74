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
import {
  listedPage,
  placeOf,
  REFUSALS,
  type Refusal,
  roomFor,
  tenantOfTurns,
  threadIdOf,
} from "../document-rules.ts";
import { noSuchThread } from "../errors.ts";
import { LITTLE_BYTES, script } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { collectionKeys, DEDUPE_TTL_MS, documentTurns, tenantTag } from "./keys.ts";
import { createSchedule, type Schedule, type ScheduleEntry } from "./schedule.ts";

/** Behind all characters that the keys of lists are made of. */
const LAST_CHAR = "\x7f";

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

/** `forget(name)`: a document is listed no longer. `list(name, now)`: it was written. Uses names, created, updated. */
const ORDER = `
local function forget(name)
  for _, set in ipairs({ names, created, updated }) do redis.call('ZREM', set, name) end
end
local function list(name, now)
  redis.call('ZADD', names, 0, name)
  redis.call('ZADD', created, 'NX', now, name)
  redis.call('ZADD', updated, now, name)
end`;

/**
 * Output: key, text, when it was created, when written, key … of up to `limit` documents. By key from `from` to `to`, as ZRANGE takes
 * them; or newest first, behind the key `to` of the time `from`, or all when that is empty.
 */
const pageOfDocuments = script<string[]>()({
  kind: "reads",
  keys: ["items", "names", "created", "updated"],
  args: ["order", "from", "to", "limit"],
  lua: `
local found = {}
local function add(key)
  local at = { redis.call('ZSCORE', created, key), redis.call('ZSCORE', updated, key) }
  for _, each in ipairs({ key, redis.call('HGET', items, key) or '', at[1], at[2] }) do found[#found + 1] = each end
end
if order == 'key' then
  for _, key in ipairs(redis.call('ZRANGEBYLEX', names, from, to, 'LIMIT', 0, limit)) do add(key) end
  return found
end
local set, skip = order == 'created' and created or updated, 0
repeat
  local page = redis.call('ZREVRANGEBYSCORE', set, from == '' and '+inf' or from, '-inf', 'WITHSCORES', 'LIMIT', skip, limit)
  for at = 1, #page, 2 do
    local is_seen = from ~= '' and tonumber(page[at + 1]) == tonumber(from) and page[at] >= to
    if not is_seen and #found < 4 * limit then add(page[at]) end
  end
  skip = skip + #page / 2
until #page == 0 or #found == 4 * limit
return found`,
});

/** `size(text)`: the bytes of the body. */
const SIZE = `
local function size(text) return #text - #(string.match(text, '^v%w+ ') or '') end`;

const sizeOfDocuments = script<[documents: number, bytes: number]>()({
  kind: "reads",
  keys: ["items"],
  args: [],
  lua: `${SIZE}
local sum = 0
for _, text in ipairs(redis.call('HVALS', items)) do sum = sum + size(text) end
return { redis.call('HLEN', items), sum }`,
});

/** Deletes up to `most` documents that were created first: before the last `ms`, or beyond the newest `count`. Output: how many. */
const trimDocuments = script<number>()({
  kind: "always",
  keys: ["items", "due", "names", "created", "updated"],
  args: ["ms", "count", "most"],
  lua: `${ORDER}
local gone, is_gone = {}, {}
local function add(keys)
  for _, key in ipairs(keys) do
    if not is_gone[key] and #gone < tonumber(most) then
      is_gone[key] = true
      gone[#gone + 1] = key
    end
  end
end
if ms ~= '' then
  add(redis.call('ZRANGEBYSCORE', created, '-inf', '(' .. string.format('%.0f', time() - ms), 'LIMIT', 0, most))
end
local surplus = count ~= '' and math.min(redis.call('ZCARD', created) - count, tonumber(most)) or 0
if surplus > 0 then add(redis.call('ZRANGE', created, 0, surplus - 1)) end
for _, key in ipairs(gone) do
  redis.call('HDEL', items, key)
  redis.call('ZREM', due, key)
  forget(key)
end
return #gone`,
});

/**
 * Writes nothing when one of the refusals in `order` applies, and returns the first that does. `documents` and `bytes` limit
 * what may be there already: how many documents, and how many bytes of those that are not written. The unnamed arguments are,
 * for each document, its key, the version seen, its new text and when it is due; no text deletes it. A repeated call gets the
 * same answer.
 */
const definition = {
  keys: ["items", "due", "meta", "done", "names", "created", "updated"],
  args: ["order", "documents", "bytes", "asking", "listed"],
  lua: `${LIFE}${ORDER}${SIZE}
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
local now = string.format('%.0f', time())
for at = REST, #ARGV, 4 do
  if ARGV[at + 2] == '' then redis.call('HDEL', items, ARGV[at]) else redis.call('HSET', items, ARGV[at], ARGV[at + 2]) end
  if listed == '1' then
    if ARGV[at + 2] == '' then forget(ARGV[at]) else list(ARGV[at], now) end
  end
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
