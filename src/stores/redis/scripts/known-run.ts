// The run of a thread that an idempotency key names, at one moment.

import { script } from "../script.ts";
import { LIFE, VIEW } from "./parts.ts";
import type { ViewReply } from "./replies.ts";

export const knownRun = script<[run: ViewReply, life: string] | null>()({
  kind: "reads",
  keys: ["meta", "runs", "known", "lease"],
  args: ["key"],
  lua: `${VIEW}${LIFE}
local run = redis.call('HGET', known, key)
if not run then return false end
return { view(run), life() }`,
});
