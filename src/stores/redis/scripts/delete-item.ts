// A shelf has no item of that key. Whoever deleted it may ask again, and gets the same answer.

import { script } from "../script.ts";

/** Whether there was one. */
export const deleteItem = script<number>()({
  kind: "always",
  keys: ["items", "meta", "done"],
  args: ["key", "asking"],
  lua: `
if redis.call('EXISTS', done) == 1 then return 1 end
local existed = redis.call('HDEL', items, key)
if existed == 1 then redis.call('SET', done, '', 'PX', asking) end
return existed`,
});
