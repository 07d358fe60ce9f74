// A sandbox that runs is used now. One that does not is left alone.

import { script } from "../script.ts";
import { BOX } from "./box-parts.ts";

export const touchBox = script<number>()({
  kind: "always",
  keys: ["box", "taken", "due", "running"],
  args: ["id", "revision", "ending_ms"],
  lua: `${BOX}
if old.state ~= 'running' then return 0 end
put('running', time())
return 1`,
});
