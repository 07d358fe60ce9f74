// A tenant's HTTP tool is there as it was put last, and the tenant has at most `cap` of them. Again: nothing more.

import { script } from "../script.ts";

/** Whether there was room. */
export const putTool = script<number>()({
  kind: "adds",
  keys: ["tools"],
  args: ["name", "tool", "cap"],
  lua: `
if redis.call('HEXISTS', tools, name) == 0 and redis.call('HLEN', tools) >= tonumber(cap) then return 0 end
redis.call('HSET', tools, name, tool)
return 1`,
});
