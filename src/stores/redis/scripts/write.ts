// Events and what they mean: the log, the thread's messages and its state change together or not at all. Fenced and
// repeatable as in `say`.

import { script } from "../script.ts";
import { CHANGES, FENCE, SAY, WORDS } from "./parts.ts";

/** The run's last seq; nothing when the lease is lost. */
export const write = script<number | null>()({
  kind: "adds",
  keys: ["meta", "messages", "ids", "state", "patches", "lease", "inbox", "events"],
  args: [...WORDS, "rows", "added"],
  lua: `${FENCE}${SAY}${CHANGES}
if said() then return before end
if not held() then return false end
local seq = say(epoch, before, REST, REST + 2 * rows - 1)
advance(seq)
change(REST + 2 * rows, added)
return seq`,
});
