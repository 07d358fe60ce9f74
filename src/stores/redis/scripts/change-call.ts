// Something happens to a call that brings no result: it has another state from then on, or is gone. Again: nothing more.

import { script } from "../script.ts";
import { CALLS, type CallReply, MOVES } from "./call-parts.ts";

/** The call as it is then, or the hash of the token of one that is gone. */
export const changeCall = script<CallReply | string | null>()({
  kind: "always",
  keys: ["meta", "deferred", "replies"],
  args: ["call", "moves"],
  lua: `${CALLS}${MOVES}
local found = find(call)
if not found then return false end
local state = next_of(moves, found.state)
if state == 'gone' then
  redis.call('HDEL', deferred, call)
  return found.token
end
if state then
  found.state = state
  put(call, found)
end
return view(call, found)`,
});
