// What is kept of a call.

import { script } from "../script.ts";
import { CALLS, type CallReply } from "./call-parts.ts";

export const readCall = script<CallReply | null>()({
  kind: "reads",
  keys: ["meta", "deferred", "replies"],
  args: ["call"],
  lua: `${CALLS}
local found = find(call)
return found and view(call, found) or false`,
});
