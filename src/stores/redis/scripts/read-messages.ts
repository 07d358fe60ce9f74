// A window of a thread's messages, at one moment.

import { script } from "../script.ts";
import { LIFE } from "./parts.ts";

/** Nothing when there is no message `after`. */
export const readMessages = script<[messages: string[], life: string] | null>()({
  kind: "reads",
  keys: ["meta", "messages", "ids"],
  args: ["after", "limit"],
  lua: `${LIFE}
local from = 0
if after ~= '' then
  local place = redis.call('HGET', ids, after)
  if not place then return false end
  from = place + 1
end
local to = limit == '' and -1 or from + limit - 1
if limit == '0' then return { {}, life() } end
return { redis.call('LRANGE', messages, from, to), life() }`,
});
