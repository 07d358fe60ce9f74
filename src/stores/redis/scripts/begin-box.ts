// The end of a sandbox is begun by one process at a time, and only as long as nobody has used or changed the sandbox
// since it was seen. Whoever began may ask again.

import { script } from "../script.ts";
import { BOX } from "./box-parts.ts";
import type { BoxReply } from "./read-box.ts";

/** The record as it is then, if the end has begun. */
export const beginBox = script<BoxReply | null>()({
  kind: "always",
  keys: ["box", "taken", "due", "running"],
  args: ["id", "revision", "ending_ms", "seen"],
  lua: `${BOX}
if old.revision ~= revision then
  if old.revision ~= seen or is_being_ended() then return false end
  put('ending', old.used)
end
return redis.call('HGETALL', box)`,
});
