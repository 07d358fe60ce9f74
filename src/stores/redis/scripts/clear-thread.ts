// A thread that is not busy forgets its messages, its state, its shelves and the calls it waits for, and nothing else.
// Again: nothing more.

import { THREAD } from "../keys.ts";
import { script } from "../script.ts";
import { AHEAD } from "./parts.ts";

/** The run that is in the way, or whether there is a thread. */
export const clearThread = script<string | 0 | 1>()({
  kind: "always",
  keys: THREAD,
  args: [],
  lua: `${AHEAD}
local run = ahead()
if run then return run end
if redis.call('EXISTS', meta) == 0 then return 0 end
redis.call('UNLINK', messages, ids, state, patches, deferred, replies, notes, tasks, reflections, settings)
redis.call('HSET', meta, 'outcome', 'idle', 'updated', time())
return 1`,
});
