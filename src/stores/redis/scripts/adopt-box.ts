// A sandbox that nobody knew of gets a record. One that there is stays as it is.

import { script } from "../script.ts";
import { ABOUT, BOX, TOLD } from "./box-parts.ts";

export const adoptBox = script<number>()({
  kind: "adds",
  keys: ["box", "taken", "due", "running"],
  args: ["id", "revision", "ending_ms", ...ABOUT, "as"],
  lua: `${BOX}${TOLD}
if old.state then return 0 end
put(as, time(), told)
return 1`,
});
