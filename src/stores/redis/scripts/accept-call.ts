// A call that was sent is accepted. One that was delivered already stays so. Again: nothing more.

import { script } from "../script.ts";
import { CALLS, type CallReply } from "./call-parts.ts";

/** The call as it is then. */
export const acceptCall = script<CallReply | null>()({
  kind: "always",
  keys: ["meta", "deferred", "replies"],
  args: ["call"],
  lua: `${CALLS}
local found = find(call)
if not found then return false end
if found.state == 'sent' then
  found.state = 'accepted'
  put(call, found)
end
return view(call, found)`,
});
