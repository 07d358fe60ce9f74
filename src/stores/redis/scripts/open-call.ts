// A call of a thread that is there is kept, in place of what was kept of it; no result has come. At most `cap` are kept:
// where there are so many, those go first that were never accepted and whose time is up. Again: nothing more.

import { script } from "../script.ts";
import { CALLS } from "./call-parts.ts";

export const openCall = script<"open" | "none" | "full">()({
  kind: "adds",
  keys: ["meta", "deferred", "replies"],
  args: ["call", "expires", "token", "about", "cap"],
  lua: `${CALLS}
local function others()
  return redis.call('HLEN', deferred) - redis.call('HEXISTS', deferred, call)
end
local function drop_unanswered()
  for _, each in ipairs(redis.call('HKEYS', deferred)) do
    local found = find(each)
    if found.state == 'sent' and found.expires <= time() then redis.call('HDEL', deferred, each) end
  end
end
if redis.call('EXISTS', meta) == 0 then return 'none' end
local old = find(call)
if old and old.token == token then return 'open' end
if others() >= tonumber(cap) then drop_unanswered() end
if others() >= tonumber(cap) then return 'full' end
put(call, { state = 'sent', expires = tonumber(expires), token = token, by = '-', about = about })
redis.call('HDEL', replies, call)
stay(deferred)
return 'open'`,
});
