// The last events of a run, what they mean, and its end, as one: the thread is free with that, and no message that was
// left for the run is lost. When there are some that these events do not take in, nothing is changed and they are
// returned. Fenced and repeatable as in `say`: whoever wrote the end may ask again.

import { THREAD } from "../keys.ts";
import { script } from "../script.ts";
import { CHANGES, FENCE, LIFETIME, RECORD, SAY, WORDS } from "./parts.ts";

/** `ended`, with the last seq and how many runs wait; `left`, with the messages; `lost`. */
export type SettleReply = ["ended", seq: number, waiting: number] | ["left", string[]] | ["lost"];

export const settle = script<SettleReply>()({
  kind: "always",
  keys: [...THREAD, "events"],
  args: [...WORDS, "rows", "added", "how", "outcome", "retention", "ttl"],
  lua: `${FENCE}${SAY}${CHANGES}${LIFETIME}${RECORD}
local function repeated()
  local ended = redis.call('HGET', runs, 'end:' .. run)
  local seq, by, last = string.match(ended or '', '^%d+ %d+ (%d+) (%d+) (%d+) ')
  return by == epoch and last == batch and tonumber(seq)
end
local function left()
  local from, taken, found = REST + 2 * rows, {}, {}
  for at = from, from + 2 * added - 1, 2 do taken[ARGV[at]] = true end
  local entries = redis.call('HGETALL', inbox)
  for at = 1, #entries, 2 do
    if not taken[entries[at]] then table.insert(found, entries[at + 1]) end
  end
  return found
end
local seq = repeated()
if seq then return { 'ended', seq, redis.call('LLEN', queue) } end
if not held() then return { 'lost' } end
local messages_left = left()
if #messages_left > 0 then return { 'left', messages_left } end

seq = say(epoch, before, REST, REST + 2 * rows - 1)
record(run, redis.call('HGET', lease, 'attempt'), seq, epoch, batch, how)
redis.call('UNLINK', lease, inbox)
change(REST + 2 * rows, added)
redis.call('HSET', meta, 'outcome', outcome)
local waiting = redis.call('LLEN', queue)
if waiting == 0 then expire(ttl) end
if retention ~= '' then redis.call('PEXPIRE', events, retention) end
return { 'ended', seq, waiting }`,
});
