// A part of an owner's list, newest change first: what was changed at `newest` or before, without the first `skip`.

import { script } from "../script.ts";

/** Thread, time, thread, time … */
export const pageThreads = script<string[]>()({
  kind: "reads",
  keys: ["threads"],
  args: ["newest", "skip", "limit"],
  lua: "return redis.call('ZREVRANGEBYSCORE', threads, newest, '-inf', 'WITHSCORES', 'LIMIT', skip, limit)",
});
