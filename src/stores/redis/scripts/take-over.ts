// A thread that nobody looks after gets a new holder: of the run whose lease is over, one attempt and one epoch later,
// so that the holder before can write nothing any more; or of the next run that waits. When the attempts are spent the
// lease goes all the same, for the end to be written. A lease is over `grace_ms` after its time. Of several callers one gets
// it, and may ask again.

import { script } from "../script.ts";
import { CLAIM } from "./parts.ts";
import type { ClaimReply } from "./replies.ts";

/** `spent`: `died` attempts in which a process died; `held` by another, `until` then; `idle`: nothing runs or waits. */
export type TakeOverReply =
  | ["claimed", ClaimReply]
  | ["spent", ClaimReply, died: number]
  | ["held", until: string]
  | ["idle", until?: never];

export const takeOver = script<TakeOverReply>()({
  kind: "always",
  keys: ["meta", "begun", "runs", "queue", "requests", "lease"],
  args: ["lease_ms", "by", "attempts", "grace_ms"],
  lua: `${CLAIM}
local old = redis.call('HMGET', lease, 'run', 'epoch', 'attempt', 'seq', 'until', 'by', 'spent', 'released')
local died = (old[3] or 0) - (old[8] or 0)
local spent = died >= tonumber(attempts)
if old[6] == by then return { old[7] and 'spent' or 'claimed', claim(), died } end
if old[1] then
  if old[5] + grace_ms > time() then return { 'held', old[5] } end
  hold(old[1], old[2] + 1, spent and old[3] or old[3] + 1, old[4])
  if spent then redis.call('HSET', lease, 'spent', 1) end
  return { spent and 'spent' or 'claimed', claim(), died }
end
local run = redis.call('LPOP', queue)
if not run then return { 'idle' } end
begin(run)
return { 'claimed', claim() }`,
});
