// The run of a thread that was begun at a place among those that were, or next after another, at one moment. Places
// are looked for from the end, and only of runs that there are: whoever follows a thread is near its end.

import { script } from "../script.ts";
import { LIFE, VIEW } from "./parts.ts";
import type { ViewReply } from "./replies.ts";

/** `place` is 0 for the first, -1 for the last, or nothing. Nothing when there is no such run. */
export const begunRun = script<[run: ViewReply, life: string] | null>()({
  kind: "reads",
  keys: ["meta", "begun", "runs", "lease"],
  args: ["place", "after"],
  lua: `${VIEW}${LIFE}
if place == '' then
  if redis.call('HEXISTS', runs, after) == 0 then return false end
  local found = redis.call('LPOS', begun, after, 'RANK', -1)
  if not found then return false end
  place = found + 1
end
local run = redis.call('LINDEX', begun, place)
if not run then return false end
return { view(run), life() }`,
});
