// A thread is made once: of many who try at once, one makes it. Whoever made it may ask again and gets it.

import { script } from "../script.ts";
import { LIFETIME } from "./parts.ts";

/** When it was made; 0 when there is one already. */
export const createThread = script<number>()({
  kind: "adds",
  keys: ["meta"],
  args: ["owner", "title", "metadata", "by", "ttl"],
  lua: `${LIFETIME}
local old = redis.call('HMGET', meta, 'owner', 'by', 'created')
if old[1] then return old[2] == by and tonumber(old[3]) or 0 end
local now = time()
redis.call('HSET', meta, 'owner', owner, 'metadata', metadata, 'outcome', 'idle', 'by', by,
  'created', now, 'updated', now)
if title ~= '' then redis.call('HSET', meta, 'title', title) end
expire(ttl)
return now`,
});
