// A call has one result, the first that came with its token while its time was not up. Whoever delivered it may ask again.

import { script } from "../script.ts";
import { CALLS, type CallReply } from "./call-parts.ts";

/** The call as it is then; nothing when this is not its result. */
export const deliverCall = script<CallReply | null>()({
  kind: "adds",
  keys: ["meta", "deferred", "replies"],
  args: ["call", "token", "by", "reply"],
  lua: `${CALLS}
local found = find(call)
if not found or found.token ~= token then return false end
if found.state == 'delivered' then return found.by == by and view(call, found) end
if found.expires <= time() then return false end
found.state, found.by = 'delivered', by
put(call, found)
redis.call('HSET', replies, call, reply)
stay(replies)
return view(call, found)`,
});
