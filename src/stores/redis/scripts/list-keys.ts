// The ids of API keys, newest first: from the beginning, or those that come after one of them. None ever goes.

import { script } from "../script.ts";

/** Null when `after` is not one of them. */
export const listKeys = script<string[] | null>()({
  kind: "reads",
  keys: ["list"],
  args: ["after", "limit"],
  lua: `
local first = 0
if after ~= '' then
  local rank = redis.call('ZREVRANK', list, after)
  if not rank then return false end
  first = rank + 1
end
return redis.call('ZREVRANGE', list, first, first + limit - 1)`,
});
