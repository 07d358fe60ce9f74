// A thing counts no longer. Again: nothing more.

import { script } from "../script.ts";

export const releaseHeld = script<number>()({
  kind: "always",
  keys: ["held", "own_held"],
  args: ["id", "user"],
  lua: `
redis.call('ZREM', held, user .. ':' .. id)
return redis.call('ZREM', own_held, id)`,
});
