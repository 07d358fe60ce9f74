// How many of a thing the tenant and the user hold.

import { script } from "../script.ts";

export const countHeld = script<[tenant: number, user: number]>()({
  kind: "reads",
  keys: ["held", "own_held"],
  args: [],
  lua: `
local after = '(' .. string.format('%.0f', time())
return { redis.call('ZCOUNT', held, after, '+inf'), redis.call('ZCOUNT', own_held, after, '+inf') }`,
});
