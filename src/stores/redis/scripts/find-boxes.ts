// The sandboxes of a list whose time in it is `ago` or longer, longest ago first.

import { script } from "../script.ts";

export const findBoxes = script<string[]>()({
  kind: "reads",
  keys: ["list"],
  args: ["ago", "limit"],
  lua: "return redis.call('ZRANGEBYSCORE', list, '-inf', time() - ago, 'LIMIT', 0, limit)",
});
