// With which calls a thread can go on, at one moment: those that were delivered, or were accepted and whose time is up.

import { script } from "../script.ts";
import { CALLS } from "./call-parts.ts";
import { AHEAD } from "./parts.ts";

/** `next`: when the time of the first of the others is up, if ever. */
export type DueCallsReply = [owner: string | null, calls: string[], next: string | null];

/** Nothing while a run is active or waits. */
export const dueCalls = script<DueCallsReply | null>()({
  kind: "reads",
  keys: ["meta", "deferred", "replies", "lease", "queue"],
  args: [],
  lua: `${AHEAD}${CALLS}
if ahead() then return false end
local calls, next = {}, false
for _, call in ipairs(redis.call('HKEYS', deferred)) do
  local found = find(call)
  local is_over = found.expires <= time()
  if found.state == 'delivered' or found.state == 'accepted' and is_over then table.insert(calls, call)
  elseif not is_over then next = math.min(next or found.expires, found.expires) end
end
return { redis.call('HGET', meta, 'owner'), calls, next and string.format('%.0f', next) }`,
});
