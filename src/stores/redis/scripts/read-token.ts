// Where the call lies that a token is for.

import { script } from "../script.ts";

export const readToken = script<string | null>()({
  kind: "reads",
  keys: ["token"],
  args: [],
  lua: "return redis.call('GET', token)",
});
