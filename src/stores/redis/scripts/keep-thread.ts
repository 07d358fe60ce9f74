// The time of a thread on which nothing runs or waits begins anew. A thread that is busy has all the time there is.

import { THREAD } from "../keys.ts";
import { script } from "../script.ts";
import { AHEAD, LIFETIME } from "../scripts.ts";

export const keepThread = script<number>()({
  kind: "always",
  keys: THREAD,
  args: ["ttl", "interrupted_ttl"],
  lua: `${AHEAD}${LIFETIME}
if ahead() then return 0 end
expire(redis.call('HGET', meta, 'outcome') == 'interrupted' and interrupted_ttl or ttl)
return 1`,
});
