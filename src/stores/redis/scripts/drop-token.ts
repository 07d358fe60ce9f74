// A token is for nothing any more.

import { script } from "../script.ts";

export const dropToken = script<number>()({
  kind: "always",
  keys: ["token"],
  args: [],
  lua: "return redis.call('UNLINK', token)",
});
