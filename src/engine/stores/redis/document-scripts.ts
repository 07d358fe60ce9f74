// The scripts of documents. They compare versions and enforce limits. document-rules.ts defines the order of refusals
// and the limits that are checked before the writes.

import type { Document } from "../../../agent/core/documents.ts";
import type { Refusal } from "../document-rules.ts";
import { script } from "./connection.ts";

/** Parses a document from the text that these scripts return. */
export function documentOf(key: string, text: string | undefined): Document | undefined {
  if (text === undefined) return undefined;
  // Not validated, because only `write` creates these texts.
  const [, version = "", body = ""] = /^(v\w+) (.*)$/s.exec(text) ?? [];
  return { key, version, body };
}

/** `life()`: time in milliseconds until the collection's thread expires (-1: no limit, -2: no thread), and its outcome. */
const LIFE = `
local function life()
  if meta == items then return '-1' end
  return redis.call('PTTL', meta) .. ' ' .. (redis.call('HGET', meta, 'outcome') or '')
end`;

/** Returns nothing if the documents exceed `bytes`, unless `bytes` is empty. */
export const readDocuments = script<[found: (string | null)[], life: string, now: string] | null>()({
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

/**
 * Returns key, text, key, text …. Returns nothing if there are more than `most` documents, or if they exceed `bytes`,
 * unless `bytes` is empty.
 */
export const listDocuments = script<[found: string[], life: string] | null>()({
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

export const dueDocuments = script<string[]>()({
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
 * `forget(name)`: removes a document from the lists. `list(name, now)`: lists a written document. Uses names, created,
 * updated.
 */
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
 * Output: key, text, time of creation, time of the last write, key … of up to `limit` documents. Either by key from
 * `from` to `to` in the form of ZRANGE, or newest first, after the key `to` with the time `from`. An empty `from`
 * starts at the newest.
 */
export const pageOfDocuments = script<string[]>()({
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

/** `size(text)`: number of bytes in the body. */
const SIZE = `
local function size(text) return #text - #(string.match(text, '^v%w+ ') or '') end`;

export const sizeOfDocuments = script<[documents: number, bytes: number]>()({
  kind: "reads",
  keys: ["items"],
  args: [],
  lua: `${SIZE}
local sum = 0
for _, text in ipairs(redis.call('HVALS', items)) do sum = sum + size(text) end
return { redis.call('HLEN', items), sum }`,
});

/**
 * Deletes up to `most` documents, oldest first, that were created more than `ms` ago or exceed the newest `count`.
 * Output: the number of deleted documents. A repeated call returns the same reply.
 */
export const trimDocuments = script<number>()({
  kind: "always",
  keys: ["items", "due", "done", "names", "created", "updated"],
  args: ["ms", "count", "most", "asking"],
  lua: `${ORDER}
local known = redis.call('GET', done)
if known then return tonumber(known) end
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
redis.call('SET', done, #gone, 'PX', asking)
return #gone`,
});

/**
 * If one of the refusals in `order` applies, writes nothing and returns the first one that applies. `documents` and
 * `bytes` limit what the collection already contains: the number of documents, and the bytes of the documents that are
 * not written. The unnamed arguments are, for each document, its key, the version seen, its new text and its due time.
 * An empty text deletes the document. A repeated call returns the same reply.
 */
const definition = {
  keys: ["items", "due", "meta", "done", "names", "created", "updated"],
  args: ["order", "documents", "bytes", "asking", "listed"],
  lua: `${LIFE}${ORDER}${SIZE}
local function version_of(text) return string.match(text, '^(v%w+) ') end
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
/** A full Redis refuses new documents but accepts changes to existing ones. */
export const addDocuments = script<WriteReply>()({ kind: "adds", ...definition });
export const changeDocuments = script<WriteReply>()({ kind: "always", ...definition });
