// A message is left for the run that runs, once, however often it is sent.

import { script } from "../script.ts";

export const steerRun = script<"left" | "inactive" | "full">()({
  kind: "adds",
  keys: ["ids", "lease", "inbox"],
  args: ["run", "id", "message", "length"],
  lua: `
if redis.call('HGET', lease, 'run') ~= run then return 'inactive' end
if redis.call('HEXISTS', ids, id) == 1 or redis.call('HEXISTS', inbox, id) == 1 then return 'left' end
if redis.call('HLEN', inbox) >= tonumber(length) then return 'full' end
redis.call('HSET', inbox, id, redis.call('HINCRBY', lease, 'left', 1) .. ' ' .. message)
return 'left'`,
});
