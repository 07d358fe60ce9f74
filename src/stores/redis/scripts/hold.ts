// A thing counts for its tenant and its user until its time is over, and neither has more than it may, but for those
// that are held without a limit. Again: its time begins anew.

import { script } from "../script.ts";

export const hold = script<"new" | "kept" | "tenant" | "user">()({
  kind: "adds",
  keys: ["held", "own_held"],
  args: ["id", "user", "ms", "most", "own_most"],
  lua: `
local now = time()
local each = { { held, user .. ':' .. id, most, 'tenant' }, { own_held, id, own_most, 'user' } }
for _, one in ipairs(each) do redis.call('ZREMRANGEBYSCORE', one[1], '-inf', string.format('%.0f', now)) end
local known = redis.call('ZSCORE', own_held, id)
for _, one in ipairs(each) do
  if not known and one[3] ~= '' and redis.call('ZCARD', one[1]) >= tonumber(one[3]) then return one[4] end
end
for _, one in ipairs(each) do
  redis.call('ZADD', one[1], string.format('%.0f', now + ms), one[2])
  if redis.call('PTTL', one[1]) < tonumber(ms) then redis.call('PEXPIRE', one[1], ms) end
end
return known and 'kept' or 'new'`,
});
