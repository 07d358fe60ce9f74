// A thread stands in its owner's list, at the time of its newest change. The list outlasts the threads in it.

import { script } from "../script.ts";

/** Two of the list, at random, with their times: whoever adds looks after some that may be gone. */
export const listThread = script<string[]>()({
  kind: "adds",
  keys: ["threads"],
  args: ["thread", "ttl"],
  lua: `
redis.call('ZADD', threads, 'GT', string.format('%.0f', time()), thread)
if ttl ~= '' then redis.call('PEXPIRE', threads, ttl) end
return redis.call('ZRANDMEMBER', threads, 2, 'WITHSCORES')`,
});
