// One run of a thread, at one moment: the one that is named, or else the one that runs.

import { script } from "../script.ts";
import { LIFE, VIEW } from "./parts.ts";
import type { ViewReply } from "./replies.ts";

export const findRun = script<[run: ViewReply, life: string] | null>()({
  kind: "reads",
  keys: ["meta", "runs", "lease"],
  args: ["run"],
  lua: `${VIEW}${LIFE}
local wanted = run ~= '' and run or redis.call('HGET', lease, 'run')
if not wanted or redis.call('HEXISTS', runs, wanted) == 0 then return false end
return { view(wanted), life() }`,
});
