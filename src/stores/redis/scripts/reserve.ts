// A call's amounts are reserved while of every budget something is left: what was used and what is reserved together
// stay below each, or pass it by this one call. A reservation is in the sums until it ends or is void, never longer.
// Again: the same answer, and nothing more.

import { script } from "../script.ts";
import { ACCOUNTS, type AccountsReply, DATE, RESERVED } from "./quota-parts.ts";

/** Whether it was granted, and what there is with that. The unnamed arguments are budgets, as `accounts()` has amounts. */
export const reserve = script<[granted: 0 | 1, accounts: AccountsReply]>()({
  kind: "adds",
  keys: ["spent", "own_spent", "reserved", "due"],
  args: ["id", "user", "tokens", "cost", "ms"],
  lua: `${DATE}${RESERVED}${ACCOUNTS}
lapse()
local before = accounts()
if redis.call('HEXISTS', reserved, 'id:' .. id) == 1 then return { 1, before } end
for level = 0, 1 do
  for at = 0, 3 do
    local most = ARGV[REST + 4 * level + at]
    local used = before[2 + 6 * level + at] + before[6 + 6 * level + at % 2]
    if most ~= '' and used >= tonumber(most) then return { 0, before } end
  end
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
