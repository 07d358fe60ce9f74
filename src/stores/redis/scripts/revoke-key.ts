// An API key is revoked from the first time on that this is asked for.

import { script } from "../script.ts";
import { KEY_FIELDS, type KeyReply } from "./read-key.ts";

export const revokeKey = script<KeyReply>()({
  kind: "always",
  keys: ["key"],
  args: [],
  lua: `
if redis.call('EXISTS', key) == 1 then redis.call('HSETNX', key, 'revoked', time()) end
return redis.call('HMGET', key, ${KEY_FIELDS})`,
});
