// Nothing is kept of a call. Again: nothing more.

import { script } from "../script.ts";
import { CALLS } from "./call-parts.ts";

/** The hash of its token, if it was there. */
export const forgetCall = script<string | null>()({
  kind: "always",
  keys: ["meta", "deferred", "replies"],
  args: ["call"],
  lua: `${CALLS}
local found = find(call)
redis.call('HDEL', deferred, call)
redis.call('HDEL', replies, call)
return found and found.token or false`,
});
