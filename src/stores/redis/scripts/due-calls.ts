// Which calls let a thread continue, at one moment: those that have their results, or are awaited and have expired.

import { script } from "../script.ts";
import { CALLS } from "./call-parts.ts";
import { AHEAD } from "./parts.ts";

/** `next`: when the time of the first of the others is up, if ever. */
export type DueCallsReply = [owner: string | null, calls: string[], next: string | null];

/** Nothing while a run is active or waits. */
export const dueCalls = script<DueCallsReply | null>()({
  kind: "reads",
  keys: ["meta", "deferred", "replies", "lease", "queue"],
  args: ["with_result", "awaited"],
  lua: `${AHEAD}${CALLS}
local function is_in(states, state)
  return string.find(states, ' ' .. state .. ' ', 1, true)
end
if ahead() then return false end
local calls, next = {}, false
for _, call in ipairs(redis.call('HKEYS', deferred)) do
  local found = find(call)
  local is_over = found.expires <= time()
  if is_in(with_result, found.state) or is_in(awaited, found.state) and is_over then table.insert(calls, call)
  elseif not is_over then next = math.min(next or found.expires, found.expires) end
end
return { redis.call('HGET', meta, 'owner'), calls, next and string.format('%.0f', next) }`,
});
