// The format of what lies in Redis and comes on its channels, and the record of it there.

import { type Format, join } from "../format.ts";
import { type Connection, script } from "./connection.ts";
import { FORMAT_KEY } from "./keys.ts";

/** `readableFrom` stays until something is no longer written that its version reads, or is relied on that it does not write: CONTRIBUTING.md. */
const FORMAT: Format = { version: 1, readableFrom: 1 };

/** Records that this process uses the Redis. Throws `unavailable` when this process cannot read its format. */
export async function joinRedis(redis: Pick<Connection, "ask" | "run">): Promise<void> {
  for (;;) {
    const seen = await redis.ask((client) => client.get(FORMAT_KEY));
    const record = JSON.stringify(assertFormat(seen));
    if (record === seen) return;
    if ((await redis.run(recordOnce, { key: FORMAT_KEY }, { seen: seen ?? "", record })) === record) return;
  }
}

/** The record after this process has joined. Throws `unavailable` when this process cannot read the format. */
export function assertFormat(found: string | null): Format {
  return join("Redis", found === null ? undefined : (JSON.parse(found) as Format), FORMAT);
}

// The record, which is changed only if it is still as it was seen; empty: not there.
const recordOnce = script<string>()({
  kind: "always",
  keys: ["key"],
  args: ["seen", "record"],
  lua: `
local found = redis.call('GET', key)
if (found or '') ~= seen then return found or '' end
redis.call('SET', key, record)
return record`,
});
