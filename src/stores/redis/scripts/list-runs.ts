// A page of a thread's runs, newest first, at one moment: those before `cursor`, which is a run's id.

import { script } from "../script.ts";
import { LIFE, VIEW } from "./parts.ts";
import type { ViewReply } from "./replies.ts";

/** Nothing when there is no run `cursor`. */
export const listRuns = script<[runs: ViewReply[], life: string] | null>()({
  kind: "reads",
  keys: ["meta", "order", "runs", "lease"],
  args: ["cursor", "limit"],
  lua: `${VIEW}${LIFE}
local last = redis.call('LLEN', order) - 1
if cursor ~= '' then
  local place = redis.call('LPOS', order, cursor, 'RANK', -1)
  if not place then return false end
  last = place - 1
end
local found = {}
if last >= 0 then
  for _, run in ipairs(redis.call('LRANGE', order, math.max(0, last - limit + 1), last)) do
    table.insert(found, 1, view(run))
  end
end
return { found, life() }`,
});
