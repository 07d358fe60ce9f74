// A free thread's next run goes to one of those who reach for it. Whoever got it may ask again, and has it still.

import { script } from "../script.ts";
import { CLAIM } from "./parts.ts";
import type { ClaimReply } from "./replies.ts";

export const claimNext = script<ClaimReply | null>()({
  kind: "always",
  keys: ["meta", "begun", "runs", "queue", "requests", "lease"],
  args: ["lease_ms", "by"],
  lua: `${CLAIM}
local holder = redis.call('HGET', lease, 'by')
if holder == by then return claim() end
local run = not holder and redis.call('LPOP', queue)
if not run then return false end
begin(run)
return claim()`,
});
