// The scripts for budgets and usage, which count by days. As in quota-scripts.ts, rules.ts decides what can be counted,
// and each script counts atomically.

import { script } from "./connection.ts";
import { SHORTEN } from "./lua-functions.ts";

/** Arguments of scripts that count by days. */
export const DAY = ["day", "month", "next_day", "next_month", "from", "to"] as const;

/** The output if the time is not within the given day. In that case, nothing is changed. */
export type OtherDay = [now: string];

/**
 * Begins a script that counts by days: returns OtherDay, or continues with `now`. `counts(period, this, next)`: true if
 * an amount belongs to this day or month. Amounts of the next day or month also count, because the clock may have been
 * set back a little.
 */
const ON_DAY = `
local function counts(period, this, next) return period and period >= this and period <= next end
local now = time()
if now < tonumber(from) or now >= tonumber(to) then return { string.format('%.0f', now) } end`;

/**
 * `free(id)`: ends a reservation, and returns true if there was one. `lapse()`: ends expired reservations. The hash
 * contains each reservation as `id:<id>` with its user and amounts. It also contains the sums: `tokens` and `cost` for
 * the tenant, and the same names with a tag appended for a user. Uses reserved, due.
 */
const RESERVED = `
local function add(user, unit, amount)
  redis.call('HINCRBY', reserved, unit, amount)
  if redis.call('HINCRBY', reserved, unit .. ':' .. user, amount) == 0 then
    redis.call('HDEL', reserved, unit .. ':' .. user)
  end
end
local function free(id)
  local entry = redis.call('HGET', reserved, 'id:' .. id)
  if not entry then return false end
  local user, tokens, cost = string.match(entry, '^(%S+) (%d+) (%d+)$')
  add(user, 'tokens', string.format('%.0f', 0 - tokens))
  add(user, 'cost', string.format('%.0f', 0 - cost))
  redis.call('HDEL', reserved, 'id:' .. id)
  redis.call('ZREM', due, id)
  return true
end
local function lapse()
  for _, id in ipairs(redis.call('ZRANGE', due, '-inf', string.format('%.0f', now), 'BYSCORE')) do free(id) end
end`;

/**
 * `accounts()`: the time, then the tokens and the cost of the day, of the month and of reservations, first of the
 * tenant and then of the user. Expired reservations must have been removed. Uses spent, own_spent, reserved; user.
 */
const ACCOUNTS = `
local function accounts()
  local found = { string.format('%.0f', now) }
  for _, each in ipairs({ { spent, '' }, { own_spent, ':' .. user } }) do
    local old = redis.call('HMGET', each[1], 'day', 'day tokens', 'day cost', 'month', 'month tokens', 'month cost')
    local held = redis.call('HMGET', reserved, 'tokens' .. each[2], 'cost' .. each[2])
    local this_day = counts(old[1], day, next_day)
    local this_month = counts(old[4], month, next_month)
    for _, amount in ipairs({ this_day and old[2] or '0', this_day and old[3] or '0',
      this_month and old[5] or '0', this_month and old[6] or '0', held[1] or '0', held[2] or '0' }) do
      found[#found + 1] = amount
    end
  end
  return found
end`;

/** The output of `accounts()`: numbers as text. */
export type AccountsReply = string[];

/**
 * Reserves a call's amounts unless a budget would be exceeded. A reservation counts until it is settled or expires. A
 * repeated call returns the same reply and reserves nothing more.
 *
 * Returns 1 if the reservation was granted, and the resulting accounts. The unnamed arguments are the budgets: for
 * each, the indexes of the used and of the reserved amount in `accounts()`, the amount needed, and the limit.
 */
export const reserve = script<[granted: 0 | 1, accounts: AccountsReply] | OtherDay>()({
  kind: "adds",
  keys: ["spent", "own_spent", "reserved", "due"],
  args: ["id", "user", "tokens", "cost", "ms", ...DAY],
  lua: `${ON_DAY}${RESERVED}${ACCOUNTS}${SHORTEN}
lapse()
shorten(due, now + ms)
local before = accounts()
if redis.call('HEXISTS', reserved, 'id:' .. id) == 1 then return { 1, before } end
for at = REST, #ARGV, 4 do
  local used = before[tonumber(ARGV[at])] + before[tonumber(ARGV[at + 1])]
  if used + ARGV[at + 2] > tonumber(ARGV[at + 3]) then return { 0, before } end
end
redis.call('HSET', reserved, 'id:' .. id, user .. ' ' .. tokens .. ' ' .. cost)
add(user, 'tokens', tokens)
add(user, 'cost', cost)
redis.call('ZADD', due, string.format('%.0f', now + ms), id)
if redis.call('PTTL', due) < 2 * ms then
  for _, key in ipairs({ reserved, due }) do redis.call('PEXPIRE', key, string.format('%.0f', 2 * ms)) end
end
return { 1, accounts() }`,
});

/**
 * Extends the unexpired reservations with these ids (the unnamed arguments) to `ms` from now. A repeated call extends
 * them from the time of that call.
 */
export const extendReserved = script<number>()({
  kind: "always",
  keys: ["reserved", "due"],
  args: ["ms"],
  lua: `
local now = time()
for at = REST, #ARGV do
  local ends = redis.call('ZSCORE', due, ARGV[at])
  if ends and tonumber(ends) > now then redis.call('ZADD', due, string.format('%.0f', now + ms), ARGV[at]) end
end
for _, key in ipairs({ reserved, due }) do
  if redis.call('PTTL', key) < 2 * ms then redis.call('PEXPIRE', key, string.format('%.0f', 2 * ms)) end
end
return 1`,
});

/** Returns the amounts that a tenant and a user have used and reserved. Removes expired reservations first. */
export const readAccounts = script<AccountsReply | OtherDay>()({
  kind: "always",
  keys: ["spent", "own_spent", "reserved", "due"],
  args: ["user", ...DAY],
  lua: `${ON_DAY}${RESERVED}${ACCOUNTS}
lapse()
return accounts()`,
});

/** The mark is as long as the day with which all other fields begin, and it sorts before every day. */
export const MARK = "!estimated";

/**
 * Ends a call's reservation and counts its usage: in the current day and month of the tenant and of the user, and in
 * rows for the day. Both have rows by agent and model, at most `most_rows` a day. The tenant also has rows by user, at
 * most `most_users` a day. Further usage is counted in one additional row. A new day drops the rows from before
 * `first`. A call that is repeated within `asking` milliseconds counts nothing. If the usage is `estimated`, its rows
 * get a mark: one more field, `!estimated` and the JSON of day and name.
 *
 * The unnamed arguments are the numbers of a row: one call, its tokens of each kind, its cost. If there are no unnamed
 * arguments, the call used nothing.
 */
export const settleCall = script<number | OtherDay>()({
  kind: "always",
  keys: ["spent", "own_spent", "reserved", "due", "usage", "tenant_usage", "users", "settled"],
  args: [
    ...(["id", "tokens", "cost", "row", "other", "name", "estimated", "most_rows", "most_users"] as const),
    ...(["first", "kept_ms", "asking", ...DAY] as const),
  ],
  lua: `${ON_DAY}${RESERVED}
free(id)
if not ARGV[REST] then return 0 end
if not redis.call('SET', settled, 1, 'NX', 'PX', asking) then return 0 end

local function forget(key)
  for _, name in ipairs(redis.call('HKEYS', key)) do
    local is_mark = string.sub(name, 1, 10) == '${MARK}'
    local of = is_mark and cjson.decode(string.sub(name, 11))[1] or string.sub(name, 1, 10)
    if of < first then redis.call('HDEL', key, name) end
  end
end
for _, key in ipairs({ spent, own_spent }) do
  local old = redis.call('HMGET', key, 'day', 'month')
  if not counts(old[1], day, next_day) then
    redis.call('HSET', key, 'day', day, 'day tokens', 0, 'day cost', 0, 'rows', 0, 'users', 0)
    for _, each in ipairs(key == own_spent and { usage } or { tenant_usage, users }) do forget(each) end
  end
  if not counts(old[2], month, next_month) then redis.call('HSET', key, 'month', month, 'month tokens', 0, 'month cost', 0) end
  for _, period in ipairs({ 'day', 'month' }) do
    redis.call('HINCRBY', key, period .. ' tokens', tokens)
    redis.call('HINCRBY', key, period .. ' cost', cost)
  end
  redis.call('PEXPIRE', key, kept_ms)
end

local function count(key, field, rest, counter, most)
  local full = day .. field
  if redis.call('HEXISTS', key, full) == 0 and redis.call('HINCRBY', counter[1], counter[2], 1) > tonumber(most) then
    full = day .. rest
  end
  local sums = {}
  for number in string.gmatch(redis.call('HGET', key, full) or '0 0 0 0 0 0', '%d+') do
    sums[#sums + 1] = string.format('%.0f', number + ARGV[REST + #sums])
  end
  redis.call('HSET', key, full, table.concat(sums, ' '))
  if estimated == '1' then
    redis.call('HSET', key, '${MARK}' .. cjson.encode({ day, string.sub(full, #day + 1) }), 1)
  end
  redis.call('PEXPIRE', key, kept_ms)
end
count(usage, row, other, { own_spent, 'rows' }, most_rows)
count(tenant_usage, row, other, { spent, 'rows' }, most_rows)
count(users, name, '', { spent, 'users' }, most_users)
return 1`,
});

/**
 * Reads the rows of a user, the rows of a tenant, or the rows by user, and also the time.
 *
 * Returns: the time, then in turn a day with agent and model or with a user, and its numbers; and the marks of
 * `settleCall`.
 */
export const readUsage = script<string[]>()({
  kind: "reads",
  keys: ["usage"],
  args: [],
  lua: `
local found = redis.call('HGETALL', usage)
table.insert(found, 1, string.format('%.0f', time()))
return found`,
});
