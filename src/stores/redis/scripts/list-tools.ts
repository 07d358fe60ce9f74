// All of a tenant's HTTP tools, in no order.

import { script } from "../script.ts";

export const listTools = script<string[]>()({
  kind: "reads",
  keys: ["tools"],
  args: [],
  lua: "return redis.call('HVALS', tools)",
});
