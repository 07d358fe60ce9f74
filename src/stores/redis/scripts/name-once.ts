// What all processes of a database know under a key: what the first one brought. Always the same from then on.

import { script } from "../script.ts";

export const nameOnce = script<string>()({
  kind: "always",
  keys: ["key"],
  args: ["name"],
  lua: `
redis.call('SET', key, name, 'NX')
return redis.call('GET', key)`,
});
