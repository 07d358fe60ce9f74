// A run that runs is asked to stop; the harder wish wins, however often and in whatever order they come.

import type { StopMode } from "../../../core/stores.ts";
import { script } from "../script.ts";
import { VIEW } from "./parts.ts";
import type { ViewReply } from "./replies.ts";

/** The run as it is then; what it was made to do, when it only waits; and what it is asked now, when it runs. */
export const stopRun = script<[run: ViewReply, request: string | null, wish: StopMode | null] | null>()({
  kind: "always",
  keys: ["runs", "requests", "lease"],
  args: ["run", "mode"],
  lua: `${VIEW}
if redis.call('HEXISTS', runs, run) == 0 then return false end
local held = redis.call('HMGET', lease, 'run', 'stop')
if held[1] ~= run then return { view(run), redis.call('HGET', requests, run), false } end
local wish = held[2] == 'cancel' and held[2] or mode
redis.call('HSET', lease, 'stop', wish)
return { view(run), false, wish }`,
});
