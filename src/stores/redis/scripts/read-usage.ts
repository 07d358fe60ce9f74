// A user's rows, and the time.

import { script } from "../script.ts";

/** The time, then a day with agent and model, and its numbers, in turn. */
export const readUsage = script<string[]>()({
  kind: "reads",
  keys: ["usage"],
  args: [],
  lua: `
local found = redis.call('HGETALL', usage)
table.insert(found, 1, string.format('%.0f', time()))
return found`,
});
