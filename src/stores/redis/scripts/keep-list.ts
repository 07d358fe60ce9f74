// An owner's list stays as long as any thread in it.

import { script } from "../script.ts";

export const keepList = script<number>()({
  kind: "always",
  keys: ["threads"],
  args: ["ttl"],
  lua: "return redis.call('PEXPIRE', threads, ttl)",
});
