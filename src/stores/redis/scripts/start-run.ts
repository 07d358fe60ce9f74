// Accepts a run, all of it or nothing, and makes its thread if there is none. On a free thread it is claimed with
// that, or waits all the same; on a busy one it waits, or is refused. An idempotency key of a thread names one run for
// ever. Whoever made the run may ask again, and gets the same answer.

import { THREAD } from "../keys.ts";
import { script } from "../script.ts";
import { AHEAD, CLAIM, LIFETIME } from "./parts.ts";
import type { ClaimReply, ViewReply } from "./replies.ts";

/** What becomes of a run that nothing refuses: `none` when there is no room for it. */
export type WhenFree = "claim" | "wait" | "none";

export type StartReply =
  | ["claimed", ClaimReply]
  | ["queued" | "known", ViewReply]
  | ["busy", run: string]
  | ["full" | "exists" | "none"];

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
  ],
  lua: `${AHEAD}${LIFETIME}${CLAIM}
local first = key ~= '' and redis.call('HGET', known, key)
if first and first ~= run then return { 'known', view(first) } end
if redis.call('HGET', requests, 'by:' .. run) == by then
  if redis.call('HGET', lease, 'by') == by then return { 'claimed', claim() } end
  return { 'queued', view(run) }
end
if first then return { 'known', view(first) } end
if redis.call('HEXISTS', runs, run) == 1 then return { 'exists' } end
local before = ahead()
if before and when_busy == 'reject' then return { 'busy', before } end
if before and redis.call('LLEN', queue) >= tonumber(length) then return { 'full' } end
if when_free == 'none' then return { 'none' } end

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
