// A lease that is still the caller's lasts longer. It may have been over: as long as nobody took the run, it goes on; but
// not once it was given back.

import { script } from "../script.ts";

/** What the run was asked meanwhile, or nothing; `lost` when the lease is another's. */
export const renewLease = script<"cancel" | "interrupt" | "lost" | null>()({
  kind: "always",
  keys: ["lease"],
  args: ["run", "epoch", "lease_ms"],
  lua: `
local held = redis.call('HMGET', lease, 'run', 'epoch', 'stop', 'until')
if held[1] ~= run or held[2] ~= epoch or held[4] == '0' then return 'lost' end
redis.call('HSET', lease, 'until', time() + lease_ms)
return held[3]`,
});
