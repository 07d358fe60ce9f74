// What became of a sandbox, if nobody has used or changed it since it was seen. Whoever settled it may ask again.

import { script } from "../script.ts";
import { BOX } from "./box-parts.ts";

/** Whether it is settled. */
export const settleBox = script<number>()({
  kind: "always",
  keys: ["box", "taken", "due", "running", "ended"],
  args: ["id", "revision", "ending_ms", "seen", "as", "asking"],
  lua: `${BOX}
if old.revision == revision or redis.call('EXISTS', ended) == 1 then return 1 end
if old.revision ~= seen then return 0 end
if as ~= 'gone' then put(as, old.used) return 1 end
drop()
redis.call('SET', ended, '', 'PX', asking)
return 1`,
});
