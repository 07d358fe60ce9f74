// One of a tenant's HTTP tools.

import { script } from "../script.ts";

export const readTool = script<string | null>()({
  kind: "reads",
  keys: ["tools"],
  args: ["name"],
  lua: "return redis.call('HGET', tools, name)",
});
