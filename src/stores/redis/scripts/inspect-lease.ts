// How far the holder of a lease is, and what was left for the run, at one moment.

import { script } from "../script.ts";

/** Nothing when the lease is another's. */
export const inspectLease = script<[seq: string, batch: string, inbox: string[]] | null>()({
  kind: "reads",
  keys: ["lease", "inbox"],
  args: ["run", "epoch"],
  lua: `
local held = redis.call('HMGET', lease, 'run', 'epoch', 'seq', 'batch')
if held[1] ~= run or held[2] ~= epoch then return false end
return { held[3], held[4], redis.call('HVALS', inbox) }`,
});
