// Up to `limit` of the threads that must be looked after, one tenant's after another's: the tenant that was not served
// for the longest time comes first, and nobody's second before everybody's first. For `hold` nobody else gets them, and
// whoever took them may ask again; when that one dies, they come again. The sets of tenants are found by their names:
// all lie in one place.

import { script } from "../script.ts";

/** Tenant, thread, time … */
export const pickDue = script<string[]>()({
  kind: "always",
  keys: ["tenants", "threads", "taken"],
  args: ["limit", "hold"],
  lua: `
local now, picked = time(), redis.call('LRANGE', taken, 0, -1)
if #picked > 0 then return picked end
local function pick(tenant)
  local one = redis.call('ZRANGEBYSCORE', threads .. tenant, '-inf', now, 'LIMIT', 0, 1)[1]
  if one then
    local time_held = string.format('%.0f', now + hold)
    redis.call('ZADD', threads .. tenant, time_held, one)
    redis.call('RPUSH', taken, tenant, one, time_held)
    for _, part in ipairs({ tenant, one, time_held }) do table.insert(picked, part) end
  end
  local next = redis.call('ZRANGE', threads .. tenant, 0, 0, 'WITHSCORES')[2]
  if next then redis.call('ZADD', tenants, math.max(tonumber(next), now), tenant)
  else redis.call('ZREM', tenants, tenant) end
end
repeat
  local waiting = redis.call('ZRANGEBYSCORE', tenants, '-inf', now, 'LIMIT', 0, limit - #picked / 3)
  for _, tenant in ipairs(waiting) do pick(tenant) end
until #waiting == 0 or #picked == 3 * limit
redis.call('PEXPIRE', taken, hold)
return picked`,
});
