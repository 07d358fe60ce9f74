// Whether new things would be taken now: a Redis that is full, or cannot write to its disk, refuses this as it does them.

import { script } from "../script.ts";

export const tryWrite = script<number>()({
  kind: "adds",
  keys: ["probe"],
  args: ["ttl"],
  lua: "return redis.call('SET', probe, '', 'PX', ttl) and 1",
});
