// The scripts for quotas. Several processes change the counters at once, so each call counts atomically.
// quotas/rules.ts defines what can be counted. A script receives limits and amounts as numbers, adds either all amounts
// or none, and returns the numbers that explain a refusal. If a call is repeated after a lost reply, it counts once
// unless its comment specifies otherwise.

import { script } from "./connection.ts";
import { SHORTEN } from "./lua-functions.ts";

/**
 * `full(used, more, most)`: the first index at which `more` would exceed the limit. Zero never exceeds a limit. An
 * empty limit means unlimited.
 */
const FULL = `
local function full(used, more, most)
  for at = 1, #used do
    if more > 0 and most[at] ~= '' and used[at] + more > tonumber(most[at]) then return at end
  end
end`;

/**
 * Moves both times forward by their steps, starting no earlier than now. An empty step moves nothing. Moves neither
 * time if one of them would then be more than `window` plus `slack` ahead of now. A repeated call moves them again.
 *
 * Returns how far each time would be beyond `window`, or nothing if both times were moved.
 */
export const takeRequest = script<[] | [tenant: string, user: string]>()({
  kind: "adds",
  keys: ["rate", "own_rate"],
  args: ["step", "own_step", "window", "slack"],
  lua: `
local now, next, over, is_over = time(), {}, {}, false
for _, each in ipairs({ { rate, step }, { own_rate, own_step } }) do
  over[#over + 1] = ''
  if each[2] ~= '' then
    local known = tonumber(redis.call('GET', each[1]) or 0)
    -- No request could have been admitted this far ahead, so the clock was set back.
    if known > now + window + slack then known = 0 end
    local ends = math.max(known, now) + each[2]
    local too_far = ends - window - now
    over[#over] = string.format('%.17g', too_far)
    if too_far > tonumber(slack) then is_over = true end
    next[#next + 1] = { each[1], ends }
  end
end
if is_over then return over end
for _, each in ipairs(next) do
  redis.call('SET', each[1], string.format('%.3f', each[2]), 'PX', string.format('%.0f', math.ceil(each[2] - now) + 1000))
end
return {}`,
});

/**
 * Counts a resource for its tenant and its user, if neither would exceed its limit. It counts for `ms` milliseconds, or
 * for `making` milliseconds if it is new and `making` is not empty. A resource is still new while at most `making`
 * milliseconds of its time remain. A repeated call restarts its time. No resource counts for longer than `longest`
 * milliseconds, unless `longest` is empty.
 *
 * Returns `new` or `kept`, or the index of the exceeded limit. The tenant's limit has the first index.
 */
export const hold = script<"new" | "kept" | number>()({
  kind: "adds",
  keys: ["held", "own_held"],
  args: ["id", "user", "ms", "making", "longest", "most", "own_most"],
  lua: `${FULL}${SHORTEN}
local now = time()
local used, names = {}, { user .. ':' .. id, id }
for at, key in ipairs({ held, own_held }) do
  redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now))
  if longest ~= '' then shorten(key, now + longest) end
  used[at] = redis.call('ZCARD', key)
end
local ends = redis.call('ZSCORE', own_held, id)
local at_limit = full(used, ends and 0 or 1, { most, own_most })
if at_limit then return at_limit end
local is_new = not ends or tonumber(ends) <= now + (tonumber(making) or 0)
if is_new and making ~= '' then ms = making end
for at, key in ipairs({ held, own_held }) do
  redis.call('ZADD', key, string.format('%.0f', now + ms), names[at])
  if redis.call('PTTL', key) < tonumber(ms) then redis.call('PEXPIRE', key, ms) end
end
return is_new and 'new' or 'kept'`,
});

/**
 * Stops counting a resource. If `making` is not empty, this applies only to a resource that would expire within that
 * time. A repeated call has no further effect.
 */
export const releaseHeld = script<number>()({
  kind: "always",
  keys: ["held", "own_held"],
  args: ["id", "user", "making"],
  lua: `
if making ~= '' and tonumber(redis.call('ZSCORE', own_held, id) or 0) > time() + making then return 0 end
redis.call('ZREM', held, user .. ':' .. id)
return redis.call('ZREM', own_held, id)`,
});

/** Counts the holds of the tenant and the user on a resource. */
export const countHeld = script<[tenant: number, user: number]>()({
  kind: "reads",
  keys: ["held", "own_held"],
  args: [],
  lua: `
local after = '(' .. string.format('%.0f', time())
return { redis.call('ZCOUNT', held, after, '+inf'), redis.call('ZCOUNT', own_held, after, '+inf') }`,
});

/**
 * `count(user, id, bytes)`: sets the bytes stored under an id, and updates the sums. `sum(name)`: the sum of all users,
 * or of one user. `lapse()`: removes expired entries. The hash contains each entry as `id:<user> <id>`, and the sums as
 * `sum:` and `sum:<user>`. Uses stored, due.
 */
const STORED = `
local function sum(name) return tonumber(redis.call('HGET', stored, 'sum:' .. name) or 0) end
local function count(user, id, bytes)
  local name = user .. ' ' .. id
  local more = bytes - (redis.call('HGET', stored, 'id:' .. name) or 0)
  for _, each in ipairs({ 'sum:', 'sum:' .. user }) do
    if redis.call('HINCRBY', stored, each, string.format('%.0f', more)) == 0 then redis.call('HDEL', stored, each) end
  end
  if bytes > 0 then redis.call('HSET', stored, 'id:' .. name, string.format('%.0f', bytes))
  else
    redis.call('HDEL', stored, 'id:' .. name)
    redis.call('ZREM', due, name)
  end
end
local function lapse()
  for _, name in ipairs(redis.call('ZRANGE', due, '-inf', string.format('%.0f', time()), 'BYSCORE')) do
    local user, id = string.match(name, '^(%S+) (.*)$')
    count(user, id, 0)
  end
end`;

/**
 * Replaces the counted bytes of a thread if neither sum exceeds its limit. A repeated call has no further effect.
 * Returns the index of the limit that would be exceeded, or nothing. The tenant's limit has the first index.
 */
export const setStored = script<number | null>()({
  kind: "adds",
  keys: ["stored", "due"],
  args: ["id", "user", "bytes", "ms", "most", "own_most"],
  lua: `${STORED}${FULL}
lapse()
bytes = tonumber(bytes)
local more = bytes - (redis.call('HGET', stored, 'id:' .. user .. ' ' .. id) or 0)
local at_limit = full({ sum(''), sum(user) }, more, { most, own_most })
if at_limit then return at_limit end
count(user, id, bytes)
if bytes > 0 then redis.call('ZADD', due, string.format('%.0f', time() + ms), user .. ' ' .. id) end
for _, key in ipairs({ stored, due }) do
  if redis.call('PTTL', key) < tonumber(ms) then redis.call('PEXPIRE', key, ms) end
end
return false`,
});

/** Returns the bytes that the tenant and the user have stored. */
export const readStored = script<[tenant: number, user: number]>()({
  kind: "always",
  keys: ["stored", "due"],
  args: ["user"],
  lua: `${STORED}
lapse()
return { sum(''), sum(user) }`,
});
