// A thread that is gone leaves its owner's list, unless it was changed since it was seen there, or so lately that it
// may be about to be made.

import { script } from "../script.ts";

export const unlistThread = script<number>()({
  kind: "always",
  keys: ["threads"],
  args: ["thread", "seen", "young"],
  lua: `
if redis.call('ZSCORE', threads, thread) ~= seen or time() - seen < tonumber(young) then return 0 end
return redis.call('ZREM', threads, thread)`,
});
