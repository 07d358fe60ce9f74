// A thread is made once, with all that it begins with: of many who try at once, one makes it. Whoever made it may ask again
// and gets it.

import { script } from "../script.ts";
import { IN_PARTS, LIFETIME } from "./parts.ts";

/**
 * When it was made; 0 when there is one already. The unnamed arguments are the messages, `added` in number, then the id and
 * the place of each, then the slots and their values.
 */
export const createThread = script<number>()({
  kind: "adds",
  keys: ["meta", "messages", "ids", "state"],
  args: ["owner", "agent", "title", "metadata", "parent", "by", "ttl", "added"],
  lua: `${IN_PARTS}${LIFETIME}
local old = redis.call('HMGET', meta, 'owner', 'by', 'created')
if old[1] then return old[2] == by and tonumber(old[3]) or 0 end
local now = time()
redis.call('HSET', meta, 'owner', owner, 'metadata', metadata, 'outcome', 'idle', 'by', by,
  'created', now, 'updated', now)
if agent ~= '' then redis.call('HSET', meta, 'agent', agent) end
if title ~= '' then redis.call('HSET', meta, 'title', title) end
if parent ~= '' then redis.call('HSET', meta, 'parent', parent) end
in_parts('RPUSH', messages, ARGV, REST, REST + added - 1)
in_parts('HSET', ids, ARGV, REST + added, REST + 3 * added - 1)
in_parts('HSET', state, ARGV, REST + 3 * added, #ARGV)
expire(ttl)
return now`,
});
