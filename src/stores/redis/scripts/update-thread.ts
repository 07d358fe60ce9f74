// Names and annotates a thread that is there; what is not given stays as it is. The same again changes nothing more.

import { script } from "../script.ts";

export const updateThread = script<number>()({
  kind: "adds",
  keys: ["meta"],
  args: ["title", "metadata"],
  lua: `
if redis.call('EXISTS', meta) == 0 then return 0 end
redis.call('HSET', meta, 'updated', time())
if title ~= '' then redis.call('HSET', meta, 'title', title) end
if metadata ~= '' then redis.call('HSET', meta, 'metadata', metadata) end
return 1`,
});
