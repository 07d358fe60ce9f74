// An API key's record.

import { script } from "../script.ts";

/** About, hash, when it was made, when it was revoked; all of them null when there is no record. */
export type KeyReply = readonly (string | null)[];

export const KEY_FIELDS = "'about', 'hash', 'created', 'revoked'";

export const readKey = script<KeyReply>()({
  kind: "reads",
  keys: ["key"],
  args: [],
  lua: `return redis.call('HMGET', key, ${KEY_FIELDS})`,
});
