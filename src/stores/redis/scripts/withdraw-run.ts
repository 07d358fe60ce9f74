// A run that waits ends without ever having run: it leaves the queue, its log is written and delivered, and its end
// noted, as one. Again, or when it waits no longer: nothing happens.

import { THREAD } from "../keys.ts";
import { script } from "../script.ts";
import { AHEAD, LIFETIME, RECORD, SAY } from "./parts.ts";

/** Whether it waited. */
export const withdrawRun = script<number>()({
  kind: "always",
  keys: [...THREAD, "events"],
  args: ["run", "how", "publish", "channel", "retention", "ttl", "interrupted_ttl"],
  lua: `${AHEAD}${LIFETIME}${SAY}${RECORD}
if redis.call('LREM', queue, 1, run) == 0 then return 0 end
record(run, 1, say('1', 0, REST, #ARGV), '1', 0, how)
redis.call('HSET', meta, 'updated', time())
if not ahead() then expire(redis.call('HGET', meta, 'outcome') == 'interrupted' and interrupted_ttl or ttl) end
if retention ~= '' then redis.call('PEXPIRE', events, retention) end
return 1`,
});
