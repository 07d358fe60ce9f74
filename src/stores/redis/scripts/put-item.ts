// An item is there as it was put last, one version later, if it was at the version that whoever puts it has seen. A shelf
// goes with its thread, and has at most `cap` items. Whoever put it may ask again, and gets the same answer.

import { script } from "../script.ts";
import { LIFE, STAY } from "./parts.ts";

/** Its version and time; nothing when it was at another version. */
export const putItem = script<[stamp: string, life: string] | "none" | "full" | null>()({
  kind: "adds",
  keys: ["items", "meta", "done"],
  args: ["key", "value", "seen", "cap", "asking"],
  lua: `${STAY}${LIFE}
local before = redis.call('GET', done)
if before then return { before, life() } end
if meta ~= items and redis.call('EXISTS', meta) == 0 then return 'none' end
local old = redis.call('HGET', items, key)
local version = old and string.match(old, '^%d+') or '0'
if seen ~= '' and seen ~= version then return false end
if not old and redis.call('HLEN', items) >= tonumber(cap) then return 'full' end
local stamp = string.format('%.0f %.0f', version + 1, time())
redis.call('HSET', items, key, stamp .. ' ' .. value)
redis.call('SET', done, stamp, 'PX', asking)
stay(items)
return { stamp, life() }`,
});
