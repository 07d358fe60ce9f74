// A lease that is still the caller's is over: whoever looks next takes the run over. That its process meant to end does
// not count among the attempts in which one died. Again: nothing more.

import { script } from "../script.ts";

/** Whether it was the caller's. */
export const releaseLease = script<number>()({
  kind: "always",
  keys: ["lease"],
  args: ["run", "epoch"],
  lua: `
local held = redis.call('HMGET', lease, 'run', 'epoch', 'until')
if held[1] ~= run or held[2] ~= epoch then return 0 end
if held[3] == '0' then return 1 end
redis.call('HSET', lease, 'until', 0)
redis.call('HINCRBY', lease, 'released', 1)
return 1`,
});
