// Events that change nothing but the log: written, then delivered, as one. Only the holder of the lease writes; every
// batch of a holder has a number and is written once, whatever comes again and in whatever order.

import { script } from "../script.ts";
import { FENCE, SAY, WORDS } from "./parts.ts";

/** The run's last seq; nothing when the lease is lost. */
export const say = script<number | null>()({
  kind: "adds",
  keys: ["lease", "events"],
  args: WORDS,
  lua: `${FENCE}${SAY}
if said() then return before end
if not held() then return false end
local seq = say(epoch, before, REST, #ARGV)
advance(seq)
return seq`,
});
