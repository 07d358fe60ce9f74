// What several scripts of quotas do alike. Each part is made of local functions, and uses keys and arguments of the script by their names.

/** `day`, `month`: those of now, in UTC. `date(ms)`: the day and the month of a time. */
export const DATE = `
local function date(ms)
  local days = math.floor(ms / 86400000) + 719468
  local era = math.floor(days / 146097)
  local of_era = days - era * 146097
  local year = math.floor(
    (of_era - math.floor(of_era / 1460) + math.floor(of_era / 36524) - math.floor(of_era / 146096)) / 365)
  local of_year = of_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  local shifted = math.floor((5 * of_year + 2) / 153)
  local of_month = of_year - math.floor((153 * shifted + 2) / 5) + 1
  local number = shifted < 10 and shifted + 3 or shifted - 9
  local full = year + era * 400 + (number <= 2 and 1 or 0)
  local name = string.format('%04d-%02d', full, number)
  return string.format('%s-%02d', name, of_month), name
end
local now = time()
local day, month = date(now)`;

/**
 * `free(id)`: ends a reservation; whether there was one. `lapse()`: ends those that are void. The hash has each as
 * `id:<id>`: its user and amounts; and the sums, of the tenant as `tokens` and `cost`, of a user with its tag behind.
 * Uses reserved, due.
 */
export const RESERVED = `
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
 * `accounts()`: the time, then of the tenant and of the user: tokens and cost of the day, of the month, and reserved.
 * What is void must have lapsed. Uses spent, own_spent, reserved; user.
 */
export const ACCOUNTS = `
local function accounts()
  local found = { string.format('%.0f', now) }
  for _, each in ipairs({ { spent, '' }, { own_spent, ':' .. user } }) do
    local old = redis.call('HMGET', each[1], 'day', 'day tokens', 'day cost', 'month', 'month tokens', 'month cost')
    local held = redis.call('HMGET', reserved, 'tokens' .. each[2], 'cost' .. each[2])
    local this_day = old[1] and old[1] >= day
    local this_month = old[4] and old[4] >= month
    for _, amount in ipairs({ this_day and old[2] or '0', this_day and old[3] or '0',
      this_month and old[5] or '0', this_month and old[6] or '0', held[1] or '0', held[2] or '0' }) do
      found[#found + 1] = amount
    end
  end
  return found
end`;

/** What it returns: numbers, as text. */
export type AccountsReply = string[];
