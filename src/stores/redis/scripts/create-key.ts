// An API key's record is made once. Whoever made it may ask again and gets the same answer.

import { script } from "../script.ts";

/** When it was made; 0 when there is another one of this id. */
export const createKey = script<number>()({
  kind: "adds",
  keys: ["key", "all", "of"],
  args: ["id", "about", "hash"],
  lua: `
local old = redis.call('HMGET', key, 'hash', 'created')
if old[1] then return old[1] == hash and tonumber(old[2]) or 0 end
local now = time()
redis.call('HSET', key, 'about', about, 'hash', hash, 'created', now)
redis.call('ZADD', all, now, id)
redis.call('ZADD', of, now, id)
return now`,
});
