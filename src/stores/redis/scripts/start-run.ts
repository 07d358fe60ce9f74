// Accepts a run, all of it or nothing, and makes its thread if there is none. On a free thread it is claimed with
// that, or waits all the same; on a busy one it waits, or is refused. A free thread may be rewound with that: a message
// and all after it are deleted, and so are the calls that `moves` names. An idempotency key of a thread always names the
// same run. The caller may repeat the script, and gets the same answer.

import { THREAD } from "../keys.ts";
import { script } from "../script.ts";
import { FIND, MOVES } from "./call-parts.ts";
import { AHEAD, CLAIM, IN_PARTS, LIFETIME } from "./parts.ts";
import type { ClaimReply, ViewReply } from "./replies.ts";

/** What becomes of a run that nothing refuses: `none` when there is no room for it. */
export type WhenFree = "claim" | "wait" | "none";

export type StartReply =
  | ["claimed", ClaimReply]
  | ["queued" | "known", ViewReply]
  | ["busy", run: string]
  | ["full" | "exists" | "unknown" | "none"];

/** The unnamed argument, if there is one, is the message that goes with all after it. */
export const startRun = script<StartReply>()({
  kind: "adds",
  keys: THREAD,
  args: [
    "run",
    "owner",
    "agent",
    "made",
    "request",
    "key",
    "when_free",
    "when_busy",
    "length",
    "lease_ms",
    "by",
    "moves",
  ],
  lua: `${AHEAD}${LIFETIME}${CLAIM}${IN_PARTS}${FIND}${MOVES}
local function rewind(place)
  local all, gone = redis.call('HGETALL', ids), {}
  for at = 1, #all, 2 do
    if tonumber(all[at + 1]) >= place then gone[#gone + 1] = all[at] end
  end
  in_parts('HDEL', ids, gone, 1, #gone)
  if place == 0 then redis.call('UNLINK', messages) else redis.call('LTRIM', messages, 0, place - 1) end
  for _, call in ipairs(redis.call('HKEYS', deferred)) do
    if next_of(moves, find(call).state) == 'gone' then
      redis.call('HDEL', deferred, call)
      redis.call('HDEL', replies, call)
    end
  end
end
local first = key ~= '' and redis.call('HGET', known, key)
if first and first ~= run then return { 'known', view(first) } end
if redis.call('HGET', requests, 'by:' .. run) == by then
  if redis.call('HGET', lease, 'by') == by then return { 'claimed', claim() } end
  return { 'queued', view(run) }
end
if first then return { 'known', view(first) } end
if redis.call('HEXISTS', runs, run) == 1 then return { 'exists' } end
local before, rewind_to = ahead(), ARGV[REST]
if before and (when_busy == 'reject' or rewind_to) then return { 'busy', before } end
if before and redis.call('LLEN', queue) >= tonumber(length) then return { 'full' } end
local place = rewind_to and redis.call('HGET', ids, rewind_to)
if rewind_to and not place then return { 'unknown' } end
if when_free == 'none' then return { 'none' } end

if place then rewind(tonumber(place)) end
local now = time()
redis.call('HSET', runs, run, string.format('%.0f %s', now, made))
if redis.call('HSETNX', meta, 'owner', owner) == 1 then
  redis.call('HSET', meta, 'metadata', '{}', 'outcome', 'idle', 'created', now)
end
redis.call('HSET', meta, 'agent', agent, 'updated', now)
redis.call('RPUSH', order, run)
redis.call('HSET', requests, run, request, 'by:' .. run, by)
if key ~= '' then redis.call('HSET', known, key, run) end
persist()
if before or when_free == 'wait' then
  redis.call(when_busy == 'front' and 'LPUSH' or 'RPUSH', queue, run)
  return { 'queued', view(run) }
end
begin(run)
return { 'claimed', claim() }`,
});
