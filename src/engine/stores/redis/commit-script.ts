// The Lua script that carries out the writes of a decision if the thread has not changed since it was loaded.

import { script } from "./connection.ts";
import { THREAD } from "./keys.ts";
import { APPEND, DELETE_PATCHES, END_RUN, LIFETIME, MESSAGE_BYTES } from "./lua-functions.ts";
import { LOAD, LOOKUPS, type ThreadReply } from "./thread-scripts.ts";

/**
 * Carries out the writes of a decision.
 *
 * Input: `id` identifies this commit. `expected` is the `seen` of the thread that the decision was based on, or empty
 * if there was none. `held_until` is the end of its lease, if the writes take over or renew the lease. `new_run` is the
 * run to add. Neither this run nor `key` may exist yet. The unnamed arguments are the writes, each as its name, the
 * number of its arguments, and the arguments. Output: 1, the time, the active run's last seq and `seen`; or 0 and the
 * current thread. Carries out either all writes or none. The ids of the last commits are stored, so a repeated commit
 * returns the same reply.
 */
const commit = (kind: "adds" | "always") =>
  script<[done: 1, at: number, seq: string | number, seen: string] | [done: 0, now: ThreadReply]>()({
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
${LOAD}${MESSAGE_BYTES}${LIFETIME}${APPEND}${END_RUN}${DELETE_PATCHES}
local COMMITS = 16
local function is_as_expected()
  if expected ~= seen() then return false end
  if held_until ~= '' and held_until ~= held[6] then return false end
  if new_run == '' or expected == '' then return true end
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
  if at then return { 1, at, held[7] or 0, seen() } end
  return { 0, load_thread() }
end

local now, seq, may_expire = time(), held[7] or 0, false
-- A key that was just created expires with the thread.
local function stay(key)
  local left = redis.call('PTTL', meta)
  if left >= 0 then redis.call('PEXPIRE', key, left) end
end
local write = {}
function write.create_thread(owner, agent, title, metadata, parent, forked_from)
  -- If a thread is created again, it never has a version that the previous thread had.
  about = { owner, 'idle', now }
  redis.call('HSET', meta, 'owner', owner, 'metadata', metadata, 'outcome', 'idle', 'created', now, 'updated', now)
  if agent ~= '' then redis.call('HSET', meta, 'agent', agent) end
  if title ~= '' then redis.call('HSET', meta, 'title', title) end
  if parent ~= '' then redis.call('HSET', meta, 'parent', parent) end
  if forked_from ~= '' then redis.call('HSET', meta, 'forked_from', forked_from) end
  may_expire = true
end
function write.adopt_staged(staged, staged_ids, bytes)
  redis.call('RENAME', staged, messages)
  count_bytes(bytes)
  redis.call('RENAME', staged_ids, ids)
  redis.call('PERSIST', messages)
  redis.call('PERSIST', ids)
end
function write.add_messages(...)
  local bytes = message_bytes()
  for _, text in ipairs({ ... }) do bytes = bytes + #text end
  count_bytes(bytes)
  redis.call('RPUSH', messages, ...)
end
function write.add_ids(...) redis.call('HSET', ids, ...) end
function write.set_slots(...) redis.call('HSET', state, ...) end
function write.add_run(run, agent, made, request, title)
  redis.call('HSET', runs, run, string.format('%.0f %s', now, made))
  redis.call('HSET', requests, run, request)
  redis.call('RPUSH', order, run)
  redis.call('HSET', meta, 'agent', agent, 'updated', now)
  if title ~= '' then redis.call('HSETNX', meta, 'title', title) end
  if key ~= '' then redis.call('HSET', known, key, run) end
  persist()
  may_expire = false
end
function write.queue_run(run, is_front)
  redis.call(is_front == '1' and 'LPUSH' or 'RPUSH', queue, run)
end
function write.hold_run(run, epoch, attempt, begins)
  if begins == '1' then
    redis.call('LREM', queue, 1, run)
    redis.call('RPUSH', begun, run)
  end
  held[1] = run
  redis.call('HSET', lease, 'run', run, 'epoch', epoch, 'attempt', attempt, 'seq', seq, 'since', seq, 'batch', 0,
    'until', now + lease_ms)
end
function write.renew_run() redis.call('HSET', lease, 'until', now + lease_ms) end
function write.release_run()
  redis.call('HSET', lease, 'until', 0)
  redis.call('HINCRBY', lease, 'released', 1)
end
function write.excuse_run() redis.call('HINCRBY', lease, 'released', 1) end
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
  count_bytes(message_bytes() - texts_from(place))
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
  redis.call('UNLINK', messages, ids, state, patches, deferred, replies, notes, tasks, reflections, settings, sent)
  redis.call('HSET', meta, 'outcome', 'idle', 'updated', now, 'bytes', 0)
  about[2] = 'idle'
end
function write.delete_thread()
  for _, run in ipairs(redis.call('LRANGE', order, 0, -1)) do redis.call('UNLINK', stream .. run) end
  for _, key in ipairs(KEYS) do redis.call('UNLINK', key) end
  redis.call('SET', deleted, now, 'PX', dedupe_ms)
  about = {}
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
if about[1] then
  about[3] = string.format('%.0f', (about[3] or 0) + 1)
  redis.call('HSET', meta, 'version', about[3], 'commit' .. about[3] % COMMITS, string.format('%s %.0f', id, now))
end
if may_expire and not held[1] and redis.call('EXISTS', queue) == 0 then
  expire(about[2] == 'interrupted' and interrupted_ttl or ttl)
end
if events and retention ~= '' then redis.call('PEXPIRE', events, retention) end
return { 1, now, seq, seen() }`,
  });

/** Refused while Redis is full. */
export const commitAdding = commit("adds");
/** Carried out even while Redis is full. */
export const commitAlways = commit("always");
