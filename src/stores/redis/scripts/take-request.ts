// A request is counted for the tenant and the user, or for none of them, and nobody is more than a minute ahead of the
// rate. Again: one more is counted.

import { script } from "../script.ts";

/** Nothing, or which level has had its share, and in how many ms the next one will be taken. */
export const takeRequest = script<[] | [full: string, wait: string]>()({
  kind: "adds",
  keys: ["rate", "own_rate"],
  args: ["most", "own_most"],
  lua: `
local now, next, worst, full = time(), {}, 0.01, nil
for _, each in ipairs({ { rate, most, 'tenant' }, { own_rate, own_most, 'user' } }) do
  if each[2] ~= '' then
    local ends = math.max(tonumber(redis.call('GET', each[1]) or 0), now) + 60000 / each[2]
    local wait = ends - 60000 - now
    if wait > worst then worst, full = wait, each[3] end
    next[#next + 1] = { each[1], ends }
  end
end
if full then return { full, string.format('%.0f', math.ceil(worst)) } end
for _, each in ipairs(next) do
  redis.call('SET', each[1], string.format('%.3f', each[2]), 'PX', string.format('%.0f', math.ceil(each[2] - now) + 1000))
end
return {}`,
});
