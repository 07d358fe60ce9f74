// Names and annotates a thread that is there, and forgets values of its state, which it does only when it is not busy. What
// is not given stays as it is. The same again changes nothing more.

import { script } from "../script.ts";
import { AHEAD, CHANGES } from "./parts.ts";

/** The run that is in the way, or whether there is a thread. The unnamed arguments are slots to delete, as in `change`. */
export const updateThread = script<string | 0 | 1>()({
  kind: "adds",
  keys: ["meta", "messages", "ids", "state", "patches", "inbox", "lease", "queue"],
  args: ["title", "metadata", "forgets"],
  lua: `${AHEAD}${CHANGES}
if redis.call('EXISTS', meta) == 0 then return 0 end
local run = forgets ~= '' and ahead()
if run then return run end
change(REST, 0)
if title ~= '' then redis.call('HSET', meta, 'title', title) end
if metadata ~= '' then redis.call('HSET', meta, 'metadata', metadata) end
return 1`,
});
