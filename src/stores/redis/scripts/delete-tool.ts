// A tenant has no HTTP tool of that name. Whoever deleted it may ask again, and gets the same answer.

import { script } from "../script.ts";

/** Whether there was one. */
export const deleteTool = script<number>()({
  kind: "always",
  keys: ["tools", "deleted"],
  args: ["name", "asking"],
  lua: `
if redis.call('EXISTS', deleted) == 1 then return 1 end
local existed = redis.call('HDEL', tools, name)
if existed == 1 then redis.call('SET', deleted, '', 'PX', asking) end
return existed`,
});
