// A sandbox runs and is used now, unless it is being ended, or a cap of those that run or are ending is reached. The
// caps hold however many ask at once. Whoever entered it may ask again.

import { script } from "../script.ts";
import { ABOUT, BOX, TOLD } from "./box-parts.ts";

export const enterBox = script<"entered" | "ending" | "total" | "tenant">()({
  kind: "adds",
  keys: ["box", "taken", "due", "running"],
  args: ["id", "revision", "ending_ms", ...ABOUT, "total_cap", "tenant_cap"],
  lua: `${BOX}${TOLD}
if old.revision == revision then return 'entered' end
if is_being_ended() then return 'ending' end
if old.state ~= 'running' then
  local own = is_taken(old.state) and 1 or 0
  local of_tenant = tonumber(redis.call('HGET', taken, 'of ' .. tenant) or 0) - (old.tenant == tenant and own or 0)
  if of_tenant >= tonumber(tenant_cap) then return 'tenant' end
  if tonumber(redis.call('HGET', taken, 'total') or 0) - own >= tonumber(total_cap) then return 'total' end
end
put('running', time(), told)
return 'entered'`,
});
