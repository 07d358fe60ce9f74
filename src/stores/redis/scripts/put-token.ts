// It is known where the call lies that a token is for, until a while after the call's time is up.

import { script } from "../script.ts";

export const putToken = script<number>()({
  kind: "adds",
  keys: ["token"],
  args: ["place", "expires", "reserve"],
  lua: `
local left = math.max(expires - time(), 0) + reserve
return redis.call('SET', token, place, 'PX', string.format('%.0f', left)) and 1`,
});
