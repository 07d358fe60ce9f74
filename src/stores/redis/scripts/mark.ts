// Something is written, whatever it is: replicas that have it have all that was written before.

import { script } from "../script.ts";

export const mark = script<number>()({
  kind: "always",
  keys: ["mark"],
  args: ["ttl"],
  lua: "return redis.call('SET', mark, '', 'PX', ttl) and 1",
});
