// Nothing of a thread and its runs is left, or the thread is busy and all of it is. The streams of the runs are found by
// their names: all lie in one place. Whoever deleted it may ask again.

import { THREAD } from "../keys.ts";
import { script } from "../script.ts";
import { AHEAD } from "./parts.ts";

/** The run that is in the way, or whether there was a thread. */
export const deleteThread = script<string | 0 | 1>()({
  kind: "always",
  keys: [...THREAD, "deleted"],
  args: ["events", "asking"],
  lua: `${AHEAD}
if redis.call('EXISTS', deleted) == 1 then return 1 end
local run = ahead()
if run then return run end
local found = redis.call('EXISTS', meta)
for _, run in ipairs(redis.call('LRANGE', order, 0, -1)) do redis.call('UNLINK', events .. run) end
for _, key in ipairs(KEYS) do redis.call('UNLINK', key) end
if found == 1 then redis.call('SET', deleted, '', 'PX', asking) end
return found`,
});
