// The Lua scripts that read threads, runs and deferred calls, and the writes that only a lease's epoch fences. Each
// runs atomically, and all keys of a thread are in one cluster slot.

import type { StopMode } from "../../../agent/core/stores.ts";
import { script } from "./connection.ts";
import { headOf, MESSAGE_BYTES, RUN_VIEW, TTL } from "./lua-functions.ts";

/** A run: its creation record, how it ended, and its attempt while it is active. */
export type RunReply = [run: string, made: string, end: string | null, attempt: string | null];
type Text = string | null;
export type StoredReply = [run: RunReply, request: Text];
/** A call: its state, the arguments that it was opened with, and its result. */
export type CallReply = [state: string, about: string, reply: Text];

/** `seen` is passed back to `commit`. If `seen` is the same as before, the thread has not changed. */
export type HeadReply = [
  seen: string,
  owner: string,
  life: string,
  lease: [
    run: Text,
    attempt: Text,
    epoch: Text,
    released: Text,
    stop: StopMode | null,
    until: Text,
    seq: Text,
  ],
  queue: string[],
];

/** Contains only the time if there is no thread. */
export type ThreadReply = [
  now: number,
  head?: HeadReply,
  known?: RunReply | null,
  run?: StoredReply | null,
  next?: StoredReply | null,
  hasMessage?: 0 | 1 | null,
  inbox?: string[] | null,
  call?: CallReply | null,
  calls?: CallReply[] | null,
  isLast?: 0 | 1 | null,
];

/** The keys and arguments for loading a thread. Empty arguments are not looked up. */
export const LOOKUPS = [
  ...["key", "run", "wants_next", "message"],
  ...["wants_inbox", "call", "wants_calls", "last"],
] as const;

/** `head()`: a HeadReply. Uses queue and the locals that `headOf` defines. */
const HEAD_VIEW = `
local function head()
  local life = redis.call('PTTL', meta) .. ' ' .. (about[2] or '')
  return { seen(), about[1], life, held, redis.call('LRANGE', queue, 0, -1) }
end`;

/** The keys of a thread that are looked up. */
const LOADED = [
  ...["meta", "lease", "queue", "runs", "known"],
  ...["requests", "ids", "inbox", "deferred", "replies"],
] as const;

/** `load_thread()`: a ThreadReply. Uses LOADED and LOOKUPS. */
export const LOAD = `${headOf()}${HEAD_VIEW}${RUN_VIEW}
local function stored_run(run)
  if not run or redis.call('HEXISTS', runs, run) == 0 then return false end
  return { run_view(run), redis.call('HGET', requests, run) }
end
local function call_view(call)
  local text = redis.call('HGET', deferred, call)
  if not text then return false end
  local state, opened = string.match(text, '^(%S+) %S+ %S+ %S+ (.*)$')
  return { state, opened, redis.call('HGET', replies, call) }
end
local function all_calls()
  local found = {}
  for _, call in ipairs(redis.call('HKEYS', deferred)) do found[#found + 1] = call_view(call) end
  return found
end
local function is_last()
  local place = tonumber(redis.call('HGET', ids, last) or '')
  return place and place == redis.call('HLEN', ids) - 1 and 1 or 0
end
local function load_thread()
  if not about[1] then return { time() } end
  local head = head()
  local known_run = key ~= '' and redis.call('HGET', known, key)
  return { time(), head, known_run and run_view(known_run),
    run ~= '' and stored_run(run), wants_next ~= '' and stored_run(held[1] or head[5][1]),
    message ~= '' and redis.call('HEXISTS', ids, message), wants_inbox ~= '' and redis.call('HKEYS', inbox),
    call ~= '' and call_view(call), wants_calls ~= '' and all_calls(),
    last ~= '' and is_last() }
end`;

/** Output: the thread with the values that were looked up, all from the same moment. */
export const loadThread = script<ThreadReply>()({
  kind: "reads",
  keys: LOADED,
  args: LOOKUPS,
  lua: `${LOAD}
return load_thread()`,
});

/** Returned for an existing thread. Otherwise, nothing is returned. */
export type DescribeReply = [
  messages: number,
  head: HeadReply,
  agent: Text,
  title: Text,
  metadata: Text,
  created: Text,
  updated: Text,
  parent: Text,
  forked_from: Text,
  bytes: Text,
];

/** Output: the thread as the API shows it, all from the same moment. */
export const describeThread = script<DescribeReply | null>()({
  kind: "reads",
  keys: ["meta", "lease", "queue", "messages"],
  args: [],
  lua: `${headOf("agent", "title", "metadata", "created", "updated", "parent", "forked_from", "bytes")}${HEAD_VIEW}
if not about[1] then return false end
return { redis.call('LLEN', messages), head(), unpack(about, 4, 11) }`,
});

/**
 * Output: the next messages after the message `after`, up to `limit` and `bytes` but at least one, and 1 if they are
 * the last. Nothing if there is no message `after`. Reads at most twice the returned bytes. With `whole`, returns all
 * messages or none. Reads nothing if the thread's average message is too long for all of them to fit.
 */
export const readMessages = script<[messages: string[], isLast: 0 | 1, life: string] | null>()({
  kind: "reads",
  keys: ["meta", "messages", "ids"],
  args: ["after", "limit", "bytes", "whole"],
  lua: `${TTL}
local from = 0
if after ~= '' then
  local place = redis.call('HGET', ids, after)
  if not place then return false end
  from = place + 1
end
local count = redis.call('LLEN', messages)
local stop = limit == '' and count or math.min(count, from + limit)
local found, left, step = {}, tonumber(bytes), 1
if whole == '1' and from < stop then
  local total = tonumber(redis.call('HGET', meta, 'bytes') or 0)
  if total / count * (stop - from) > left then return { {}, 0, ttl_and_outcome() } end
end
while from < stop do
  local texts = redis.call('LRANGE', messages, from, math.min(from + step, stop) - 1)
  for _, text in ipairs(texts) do
    left = left - #text
    if left < 0 and whole == '1' then return { {}, 0, ttl_and_outcome() } end
    if left < 0 and #found > 0 then return { found, 0, ttl_and_outcome() } end
    found[#found + 1] = text
  end
  from, step = from + #texts, math.min(step * 2, 256)
end
return { found, from >= count and 1 or 0, ttl_and_outcome() }`,
});

/** Output: the bytes of the thread's messages. */
export const readBytes = script<number>()({
  kind: "reads",
  keys: ["meta", "messages"],
  args: [],
  lua: `${MESSAGE_BYTES}
return message_bytes()`,
});

/** Output: the message, if it exists. With `last`, the thread's last message. */
export const readMessage = script<[message: Text, life: string]>()({
  kind: "reads",
  keys: ["meta", "messages", "ids"],
  args: ["message", "last"],
  lua: `${TTL}
local place = last == '1' and -1 or redis.call('HGET', ids, message)
return { place and redis.call('LINDEX', messages, place), ttl_and_outcome() }`,
});

/**
 * Output: the slots as they were set, and their patches since, each as field, value, field, value …. Nothing if these
 * exceed `bytes`, unless `bytes` is empty.
 */
export const readState = script<[set: string[], patches: string[], life: string] | null>()({
  kind: "reads",
  keys: ["meta", "state", "patches"],
  args: ["bytes"],
  lua: `${TTL}
local set, merged = redis.call('HGETALL', state), redis.call('HGETALL', patches)
if bytes ~= '' then
  local left = tonumber(bytes)
  for _, texts in ipairs({ set, merged }) do
    for _, text in ipairs(texts) do left = left - #text end
  end
  if left < 0 then return false end
end
return { set, merged, ttl_and_outcome() }`,
});

/** Output: a page of runs before the run `cursor`, newest first. Nothing if the run does not exist. */
export const listRuns = script<[runs: RunReply[], life: string] | null>()({
  kind: "reads",
  keys: ["meta", "order", "runs", "lease"],
  args: ["cursor", "limit"],
  lua: `local held = redis.call('HMGET', lease, 'run', 'attempt')${RUN_VIEW}${TTL}
local last = redis.call('LLEN', order) - 1
if cursor ~= '' then
  local place = redis.call('LPOS', order, cursor, 'RANK', -1)
  if not place then return false end
  last = place - 1
end
local found = {}
if last >= 0 then
  for _, run in ipairs(redis.call('LRANGE', order, math.max(0, last - limit + 1), last)) do
    table.insert(found, 1, run_view(run))
  end
end
return { found, ttl_and_outcome() }`,
});

/**
 * Input: `place` in the order in which runs began (0 is the first, -1 the last), or empty for the run that began next
 * after the run `after`. Output: the run, or nothing. The search starts at the end, where followers usually are.
 */
export const findBegunRun = script<[run: RunReply, life: string] | null>()({
  kind: "reads",
  keys: ["meta", "begun", "runs", "lease"],
  args: ["place", "after"],
  lua: `local held = redis.call('HMGET', lease, 'run', 'attempt')${RUN_VIEW}${TTL}
if place == '' then
  if redis.call('HEXISTS', runs, after) == 0 then return false end
  local found = redis.call('LPOS', begun, after, 'RANK', -1)
  if not found then return false end
  place = found + 1
end
local run = redis.call('LINDEX', begun, place)
if not run then return false end
return { run_view(run), ttl_and_outcome() }`,
});

/**
 * Output: the position of the run `sought` in the order in which runs began, starting at 1. Nothing if the run has not
 * begun.
 */
export const findPlace = script<[place: number, life: string] | null>()({
  kind: "reads",
  keys: ["meta", "begun"],
  args: ["sought"],
  lua: `${TTL}
local found = redis.call('LPOS', begun, sought, 'RANK', -1)
if not found then return false end
return { found + 1, ttl_and_outcome() }`,
});

/** Extends a lease, even an expired one, unless it was returned. Output: the requested stop, or `lost`. */
export const renewLease = script<StopMode | "lost" | null>()({
  kind: "always",
  keys: ["lease"],
  args: ["run", "epoch", "lease_ms"],
  lua: `
local held = redis.call('HMGET', lease, 'run', 'epoch', 'stop', 'until')
if held[1] ~= run or held[2] ~= epoch or held[4] == '0' then return 'lost' end
redis.call('HSET', lease, 'until', time() + lease_ms)
return held[3]`,
});

/** Output: the last seq and batch of a lease and the run's inbox, all from the same moment. Nothing if the lease is lost. */
export const inspectLease = script<[seq: string, batch: string, inbox: string[]] | null>()({
  kind: "reads",
  keys: ["lease", "inbox"],
  args: ["run", "epoch"],
  lua: `
local held = redis.call('HMGET', lease, 'run', 'epoch', 'seq', 'batch')
if held[1] ~= run or held[2] ~= epoch then return false end
return { held[3], held[4], redis.call('HVALS', inbox) }`,
});
