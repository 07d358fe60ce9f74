// A thread with runs is to be looked after when `wait` has passed, or earlier if it was to be already. Noted before
// there is a run, so that no run is ever without a note. The time noted is another one than before, so that whoever
// looked at the thread meanwhile does not take the note away. A tenant has at most `cap` threads noted so; one that
// is noted already always may. Again: noted a moment earlier, which harms nobody.

import { script } from "../script.ts";

/** The time noted; nothing when there are too many. */
export const noteDue = script<string | null>()({
  kind: "always",
  keys: ["tenants", "threads"],
  args: ["tenant", "thread", "wait", "cap"],
  lua: `
local due = time() + wait
local old = tonumber(redis.call('ZSCORE', threads, thread) or nil)
if not old and cap ~= '' and redis.call('ZCARD', threads) >= tonumber(cap) then return false end
if old then due = math.min(due, old) end
if due == old then due = due - 0.5 end
local noted = string.format('%.1f', due)
redis.call('ZADD', threads, noted, thread)
redis.call('ZADD', tenants, 'LT', noted, tenant)
return noted`,
});
