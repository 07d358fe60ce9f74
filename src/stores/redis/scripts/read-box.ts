// A sandbox's record, whole.

import { script } from "../script.ts";

/** Field, value, field, value …; none when there is no record. */
export type BoxReply = string[];

export const readBox = script<BoxReply>()({
  kind: "reads",
  keys: ["box"],
  args: [],
  lua: "return redis.call('HGETALL', box)",
});
