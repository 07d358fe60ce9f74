// A call's reservation has ended, and what it used is counted: in the tenant's and the user's newest day and month, and
// in the user's row of the day, its agent and its model, of which a day has `most_rows`; what comes then is in one more.
// Again, for a while: nothing more.

import { script } from "../script.ts";
import { DATE, RESERVED } from "./quota-parts.ts";

/** The unnamed arguments are the numbers of a row: one call, its tokens of each kind, its cost. Without, nothing was used. */
export const settleCall = script<number>()({
  kind: "always",
  keys: ["spent", "own_spent", "reserved", "due", "usage", "settled"],
  args: ["id", "tokens", "cost", "row", "other", "most_rows", "kept_ms", "asking"],
  lua: `${DATE}${RESERVED}
free(id)
if not ARGV[REST] then return 0 end
if not redis.call('SET', settled, 1, 'NX', 'PX', asking) then return 0 end

local function forget()
  local first = date(now - kept_ms)
  for _, name in ipairs(redis.call('HKEYS', usage)) do
    if string.sub(name, 1, 10) <= first then redis.call('HDEL', usage, name) end
  end
end
for _, key in ipairs({ spent, own_spent }) do
  local old = redis.call('HMGET', key, 'day', 'month')
  if not old[1] or old[1] < day then
    redis.call('HSET', key, 'day', day, 'day tokens', 0, 'day cost', 0)
    if key == own_spent then redis.call('HSET', key, 'rows', 0) forget() end
  end
  if not old[2] or old[2] < month then redis.call('HSET', key, 'month', month, 'month tokens', 0, 'month cost', 0) end
  for _, period in ipairs({ 'day', 'month' }) do
    redis.call('HINCRBY', key, period .. ' tokens', tokens)
    redis.call('HINCRBY', key, period .. ' cost', cost)
  end
  redis.call('PEXPIRE', key, kept_ms)
end

local name = day .. row
if redis.call('HEXISTS', usage, name) == 0 and redis.call('HINCRBY', own_spent, 'rows', 1) > tonumber(most_rows) then
  name = day .. other
end
local sums = {}
for number in string.gmatch(redis.call('HGET', usage, name) or '0 0 0 0 0 0', '%d+') do
  sums[#sums + 1] = string.format('%.0f', number + ARGV[REST + #sums])
end
redis.call('HSET', usage, name, table.concat(sums, ' '))
redis.call('PEXPIRE', usage, kept_ms)
return 1`,
});
