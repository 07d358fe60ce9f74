// The Lua scripts of threads, runs and deferred calls. `load` reads a thread with what a decision looks up; `commit` carries
// out the writes of a decision if the thread is still as it was loaded; the others read. Each runs atomically, and all keys
// of a thread are in one cluster slot.

import type { StopMode } from "../../core/stores.ts";
import { script } from "./connection.ts";
import { THREAD } from "./keys.ts";

/** A run: what it was created with, how it ended, and its attempt while it is active. */
export type RunReply = [run: string, made: string, end: string | null, attempt: string | null];

/** `run_view(run)`: a RunReply. Uses runs, lease. */
export const RUN_VIEW = `
local function run_view(run)
  local held = redis.call('HMGET', lease, 'run', 'attempt')
  local made = redis.call('HMGET', runs, run, 'end:' .. run)
  return { run, made[1], made[2], held[1] == run and held[2] }
end`;

/** `ahead()`: the active run, else the first in the queue, else false. Uses lease, queue. */
export const AHEAD = `
local function ahead()
  return redis.call('HGET', lease, 'run') or redis.call('LINDEX', queue, 0)
end`;

/**
 * `expire(ms)`: all keys of a thread without work expire at one moment; never if `ms` is empty. `persist()` undoes it.
 * Every key of the script must be the thread's.
 */
export const LIFETIME = `
local function expire(ms)
  if ms == '' then return end
  local now = redis.call('TIME')
  local at = now[1] * 1000 + math.floor(now[2] / 1000) + ms
  for _, key in ipairs(KEYS) do redis.call('PEXPIREAT', key, string.format('%.0f', at)) end
end
local function persist()
  if redis.call('PTTL', meta) == -1 then return end
  for _, key in ipairs(KEYS) do redis.call('PERSIST', key) end
end`;

/** `ttl_and_outcome()`: the thread's PTTL and outcome, as `Lifetime.used` takes them. Uses meta. */
export const TTL = `
local function ttl_and_outcome()
  return redis.call('PTTL', meta) .. ' ' .. (redis.call('HGET', meta, 'outcome') or '')
end`;

/**
 * `append(epoch, seq, rows, from, to)`: adds rows (a number of entries, their text, …) to the run's stream and publishes
 * them; returns the new last seq. Redis refuses an id of an older epoch. Uses events; publish, channel.
 */
export const APPEND = `
local function append(epoch, seq, rows, from, to)
  for at = from, to, 2 do
    seq = seq + rows[at]
    local id = string.format('%s-%.0f', epoch, seq)
    redis.call('XADD', events, id, 'n', rows[at], 'd', rows[at + 1])
    redis.call(publish, channel, id .. ' ' .. rows[at + 1])
  end
  return seq
end`;

/** `end_run(run, attempt, seq, epoch, batch, how)`: notes that and how a run has ended. Uses runs, requests. */
export const END_RUN = `
local function end_run(run, attempt, seq, epoch, batch, how)
  redis.call('HDEL', requests, run, 'by:' .. run)
  redis.call('HSET', runs, 'end:' .. run,
    string.format('%s %.0f %.0f %s %s %s', attempt, time(), seq, epoch, batch, how))
end`;

/** `delete_patches(name)`: deletes what was merged into a slot. Uses patches. */
export const DELETE_PATCHES = `
local function delete_patches(name)
  if redis.call('HDEL', patches, name .. '=') == 0 then return end
  local prefix = name .. '/'
  for _, field in ipairs(redis.call('HKEYS', patches)) do
    if string.sub(field, 1, #prefix) == prefix then redis.call('HDEL', patches, field) end
  end
end`;

/** What a thread is loaded with. An empty argument is not looked up. */
const LOOKUPS = ["key", "run", "wants_next", "message", "wants_inbox", "call", "wants_calls"] as const;

/**
 * `seen()`: a text that changes with everything that a decision goes by, also when an older version of this program
 * changes it. `load_thread()`: a ThreadReply. Uses all keys of a thread and LOOKUPS.
 */
const LOAD = `${RUN_VIEW}${TTL}
local function seen()
  local parts = redis.call('HMGET', lease, 'run', 'epoch', 'released', 'stop', 'left')
  for at = 1, 5 do parts[at] = parts[at] or '' end
  parts[6] = redis.call('HGET', meta, 'version') or 0
  parts[7], parts[8] = redis.call('LLEN', order), redis.call('LLEN', queue)
  parts[9] = redis.call('HLEN', deferred)
  parts[10] = call ~= '' and redis.call('HGET', deferred, call) or ''
  return table.concat(parts, ' ')
end
local function stored_run(run)
  if not run or redis.call('HEXISTS', runs, run) == 0 then return false end
  return { run_view(run), redis.call('HGET', requests, run) }
end
local function call_view(call)
  local text = redis.call('HGET', deferred, call)
  if not text then return false end
  local state, about = string.match(text, '^(%S+) %S+ %S+ %S+ (.*)$')
  return { state, about, redis.call('HGET', replies, call) }
end
local function all_calls()
  local found = {}
  for _, call in ipairs(redis.call('HKEYS', deferred)) do found[#found + 1] = call_view(call) end
  return found
end
local function load_thread()
  local owner = redis.call('HGET', meta, 'owner')
  if not owner then return { time(), '' } end
  local held = redis.call('HMGET', lease, 'run', 'epoch', 'attempt', 'released', 'stop', 'until')
  local waiting = redis.call('LRANGE', queue, 0, -1)
  local known_run = key ~= '' and redis.call('HGET', known, key)
  return { time(), seen(), owner, ttl_and_outcome(), held, waiting, known_run and run_view(known_run),
    run ~= '' and stored_run(run), wants_next ~= '' and stored_run(held[1] or waiting[1]),
    message ~= '' and redis.call('HEXISTS', ids, message), wants_inbox ~= '' and redis.call('HKEYS', inbox),
    call ~= '' and call_view(call), wants_calls ~= '' and all_calls() }
end`;

type Text = string | null;
export type StoredReply = [run: RunReply, request: Text];
/** A call: its state, what it was opened with, and its result. */
export type CallReply = [state: string, about: string, reply: Text];

/** `seen` goes back to `commit`. Without a thread there is nothing after it. */
export type ThreadReply = [
  now: number,
  seen: string,
  owner?: string,
  life?: string,
  lease?: [run: Text, epoch: Text, attempt: Text, released: Text, stop: StopMode | null, until: Text],
  queue?: string[],
  known?: RunReply | null,
  run?: StoredReply | null,
  next?: StoredReply | null,
  hasMessage?: 0 | 1 | null,
  inbox?: string[] | null,
  call?: CallReply | null,
  calls?: CallReply[] | null,
];

/** Output: the thread with what was looked up. Atomicity: all of it is of one moment. */
export const loadThread = script<ThreadReply>()({
  kind: "reads",
  keys: THREAD,
  args: LOOKUPS,
  lua: `${LOAD}
return load_thread()`,
});

/**
 * Carries out the writes of a decision.
 *
 * Input: `id` names this commit. `expected`: `seen` of the thread on which was decided, empty if there was none; and
 * `held_until`, its lease's time, when the lease is to be taken over. `new_run`: the run that is added, which must not be
 * there yet, nor `key`. The unnamed arguments are the writes: each a name, the number of its arguments, and these.
 * Output: 1, the time and the active run's last seq; or 0 and the thread as it is.
 * Atomicity: all writes or none. The ids of the last commits are kept, so the same commit again answers the same.
 */
const commit = (kind: "adds" | "always") =>
  script<[done: 1, at: number, seq: string | null] | [done: 0, now: ThreadReply]>()({
    kind,
    keys: THREAD,
    args: [
      ...LOOKUPS,
      "id",
      "expected",
      "held_until",
      "new_run",
      "lease_ms",
      "ttl",
      "interrupted_ttl",
      "retention",
      "publish",
      "channel",
      "stream",
      "deleted",
      "dedupe_ms",
    ],
    lua: `
local events
${LOAD}${AHEAD}${LIFETIME}${APPEND}${END_RUN}${DELETE_PATCHES}
local COMMITS = 16
local function is_as_expected()
  if expected == '' then return redis.call('EXISTS', meta) == 0 end
  if expected ~= seen() then return false end
  if held_until ~= '' and redis.call('HGET', lease, 'until') ~= held_until then return false end
  if new_run == '' then return true end
  return redis.call('HEXISTS', runs, new_run) == 0 and (key == '' or redis.call('HEXISTS', known, key) == 0)
end
local function earlier()
  local done = redis.call('GET', deleted)
  if done then return tonumber(done) end
  for slot = 0, COMMITS - 1 do
    local by, at = string.match(redis.call('HGET', meta, 'commit' .. slot) or '', '^(%S+) (%d+)$')
    if by == id then return tonumber(at) end
  end
end
if not is_as_expected() then
  local at = earlier()
  if at then return { 1, at, redis.call('HGET', lease, 'seq') } end
  return { 0, load_thread() }
end

local now, may_expire = time(), false
-- A key that was just created expires with the thread.
local function stay(key)
  local left = redis.call('PTTL', meta)
  if left >= 0 then redis.call('PEXPIRE', key, left) end
end
local write = {}
function write.create_thread(owner, agent, title, metadata, parent)
  -- A thread that is made again is at no version that the one before was at.
  redis.call('HSET', meta, 'owner', owner, 'metadata', metadata, 'outcome', 'idle', 'created', now, 'updated', now,
    'version', now)
  if agent ~= '' then redis.call('HSET', meta, 'agent', agent) end
  if title ~= '' then redis.call('HSET', meta, 'title', title) end
  if parent ~= '' then redis.call('HSET', meta, 'parent', parent) end
  may_expire = true
end
function write.add_messages(...) redis.call('RPUSH', messages, ...) end
function write.add_ids(...) redis.call('HSET', ids, ...) end
function write.set_slots(...) redis.call('HSET', state, ...) end
function write.add_run(run, agent, made, request)
  redis.call('HSET', runs, run, string.format('%.0f %s', now, made))
  redis.call('HSET', requests, run, request)
  redis.call('RPUSH', order, run)
  redis.call('HSET', meta, 'agent', agent, 'updated', now)
  if key ~= '' then redis.call('HSET', known, key, run) end
  persist()
end
function write.queue_run(run, is_front)
  redis.call(is_front == '1' and 'LPUSH' or 'RPUSH', queue, run)
end
function write.hold_run(run, epoch, attempt, begins)
  if begins == '1' then
    redis.call('LREM', queue, 1, run)
    redis.call('RPUSH', begun, run)
  end
  local seq = redis.call('HGET', lease, 'seq') or 0
  redis.call('HSET', lease, 'run', run, 'epoch', epoch, 'attempt', attempt, 'seq', seq, 'since', seq, 'batch', 0,
    'until', now + lease_ms)
end
function write.release_run()
  redis.call('HSET', lease, 'until', 0)
  redis.call('HINCRBY', lease, 'released', 1)
end
function write.stop_run(mode) redis.call('HSET', lease, 'stop', mode) end
function write.cancel_run(run, how, ...)
  events = stream .. run
  redis.call('LREM', queue, 1, run)
  end_run(run, 1, append('1', 0, { ... }, 1, select('#', ...)), '1', 0, how)
  redis.call('HSET', meta, 'updated', now)
  KEYS[#KEYS + 1] = events
  may_expire = true
end
function write.leave_message(id, message)
  redis.call('HSET', inbox, id, redis.call('HINCRBY', lease, 'left', 1) .. ' ' .. message)
end
function write.rewind(message)
  local place = tonumber(redis.call('HGET', ids, message))
  local all = redis.call('HGETALL', ids)
  for at = 1, #all, 2 do
    if tonumber(all[at + 1]) >= place then redis.call('HDEL', ids, all[at]) end
  end
  if place == 0 then redis.call('UNLINK', messages) else redis.call('LTRIM', messages, 0, place - 1) end
end
function write.describe_thread(title, metadata)
  if title ~= '' then redis.call('HSET', meta, 'title', title) end
  if metadata ~= '' then redis.call('HSET', meta, 'metadata', metadata) end
  redis.call('HSET', meta, 'updated', now)
end
function write.forget_slot(slot, name)
  redis.call('HDEL', state, slot)
  delete_patches(name)
end
function write.clear_thread()
  redis.call('UNLINK', messages, ids, state, patches, deferred, replies, notes, tasks, reflections, settings)
  redis.call('HSET', meta, 'outcome', 'idle', 'updated', now)
end
function write.delete_thread()
  for _, run in ipairs(redis.call('LRANGE', order, 0, -1)) do redis.call('UNLINK', stream .. run) end
  for _, key in ipairs(KEYS) do redis.call('UNLINK', key) end
  redis.call('SET', deleted, now, 'PX', dedupe_ms)
end
function write.put_call(call, state, expires, token, about, reply)
  redis.call('HSET', deferred, call, table.concat({ state, expires, token, '-', about }, ' '))
  stay(deferred)
  if reply == '' then return end
  redis.call('HSET', replies, call, reply)
  stay(replies)
end
function write.drop_call(call)
  redis.call('HDEL', deferred, call)
  redis.call('HDEL', replies, call)
end

local at = REST
while at <= #ARGV do
  local last = at + 1 + ARGV[at + 1]
  write[ARGV[at]](unpack(ARGV, at + 2, last))
  at = last + 1
end
if redis.call('EXISTS', meta) == 1 then
  local version = redis.call('HINCRBY', meta, 'version', 1)
  redis.call('HSET', meta, 'commit' .. version % COMMITS, string.format('%s %.0f', id, now))
end
if may_expire and not ahead() then
  expire(redis.call('HGET', meta, 'outcome') == 'interrupted' and interrupted_ttl or ttl)
end
if events and retention ~= '' then redis.call('PEXPIRE', events, retention) end
return { 1, now, redis.call('HGET', lease, 'seq') }`,
  });

/** Refused while Redis is full. */
export const commitAdding = commit("adds");
/** Also carried out while Redis is full. */
export const commitAlways = commit("always");

/** Nothing when there is no thread; `now` as `load` without lookups. */
export type DescribeReply = [
  agent: Text,
  title: Text,
  metadata: Text,
  outcome: Text,
  created: Text,
  updated: Text,
  messages: number,
  parent: Text,
  now: ThreadReply,
];

/** Output: what the API shows of a thread, and the thread as loaded. Atomicity: all of it is of one moment. */
export const describeThread = script<DescribeReply | null>()({
  kind: "reads",
  keys: THREAD,
  args: [],
  lua: `local key, run, wants_next, message, wants_inbox, call, wants_calls = '', '', '', '', '', '', ''
${LOAD}
local found = redis.call('HMGET', meta, 'agent', 'title', 'metadata', 'outcome', 'created', 'updated')
if not found[3] then return false end
found[7], found[8], found[9] = redis.call('LLEN', messages), redis.call('HGET', meta, 'parent'), load_thread()
return found`,
});

/**
 * Output: the next messages after the message `after`, up to `limit` and up to `bytes`, but at least one, and whether they
 * are the last; nothing when there is no message `after`. What is read beyond `bytes` is at most what is returned.
 */
export const readMessages = script<[messages: string[], isLast: 0 | 1, life: string] | null>()({
  kind: "reads",
  keys: ["meta", "messages", "ids"],
  args: ["after", "limit", "bytes"],
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
while from < stop do
  local texts = redis.call('LRANGE', messages, from, math.min(from + step, stop) - 1)
  for _, text in ipairs(texts) do
    left = left - #text
    if left < 0 and #found > 0 then return { found, 0, ttl_and_outcome() } end
    found[#found + 1] = text
  end
  from, step = from + #texts, math.min(step * 2, 256)
end
return { found, from >= count and 1 or 0, ttl_and_outcome() }`,
});

/** Output: the slots as they were set, and what was merged into them since, each as field, value, field, value … */
export const readState = script<[set: string[], patches: string[], life: string]>()({
  kind: "reads",
  keys: ["meta", "state", "patches"],
  args: [],
  lua: `${TTL}
return { redis.call('HGETALL', state), redis.call('HGETALL', patches), ttl_and_outcome() }`,
});

/** Output: a page of runs, newest first, those before the run `cursor`; nothing when there is no such run. */
export const listRuns = script<[runs: RunReply[], life: string] | null>()({
  kind: "reads",
  keys: ["meta", "order", "runs", "lease"],
  args: ["cursor", "limit"],
  lua: `${RUN_VIEW}${TTL}
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
 * Input: `place` in the order in which runs began, 0 the first and -1 the last; or empty, for the run that began next
 * after the run `after`. Output: the run, or nothing. Places are searched from the end, where followers usually are.
 */
export const findBegunRun = script<[run: RunReply, life: string] | null>()({
  kind: "reads",
  keys: ["meta", "begun", "runs", "lease"],
  args: ["place", "after"],
  lua: `${RUN_VIEW}${TTL}
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

/** Extends a lease, even one that has expired, unless it was given back. Output: the stop asked for, or `lost`. */
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

/** Output: the last seq and batch of a lease and the run's inbox, of one moment; nothing when the lease is lost. */
export const inspectLease = script<[seq: string, batch: string, inbox: string[]] | null>()({
  kind: "reads",
  keys: ["lease", "inbox"],
  args: ["run", "epoch"],
  lua: `
local held = redis.call('HMGET', lease, 'run', 'epoch', 'seq', 'batch')
if held[1] ~= run or held[2] ~= epoch then return false end
return { held[3], held[4], redis.call('HVALS', inbox) }`,
});

/** Notes the place of the call that a token is for, until `reserve` ms after the call has expired. */
export const putToken = script<number>()({
  kind: "adds",
  keys: ["token"],
  args: ["place", "expires", "reserve"],
  lua: `
local left = math.max(expires - time(), 0) + reserve
return redis.call('SET', token, place, 'PX', string.format('%.0f', left)) and 1`,
});

export const readToken = script<Text>()({
  kind: "reads",
  keys: ["token"],
  args: [],
  lua: "return redis.call('GET', token)",
});

export const dropToken = script<number>()({
  kind: "always",
  keys: ["token"],
  args: [],
  lua: "return redis.call('UNLINK', token)",
});
