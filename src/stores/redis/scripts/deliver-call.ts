// A call has one result, the first that came with its token while its time was not up. Whoever delivered it may ask again.

import { script } from "../script.ts";
import { CALLS, type CallReply, MOVES } from "./call-parts.ts";

/** The call as it is then; nothing when this is not its result. */
export const deliverCall = script<CallReply | null>()({
  kind: "adds",
  keys: ["meta", "deferred", "replies"],
  args: ["call", "token", "by", "moves", "reply"],
  lua: `${CALLS}${MOVES}
local found = find(call)
if not found or found.token ~= token then return false end
if found.by == by then return view(call, found) end
local state = next_of(moves, found.state)
if not state or found.expires <= time() then return false end
found.state, found.by = state, by
put(call, found)
redis.call('HSET', replies, call, reply)
stay(replies)
return view(call, found)`,
});
