// The format of the data in Redis and on its channels, and the record of that format.

import { AppError } from "../../../agent/core/errors.ts";
import { type Format, join } from "../format.ts";
import { type RedisConnection, script } from "./connection.ts";
import { DEPLOYMENT, FORMAT_KEY } from "./keys.ts";

/**
 * Increase `readableFrom` only when this version stops writing data that the old version reads, or relies on data that
 * the old version does not write. See CONTRIBUTING.md.
 */
const FORMAT: Format = { version: 1, readableFrom: 1 };

const WITHOUT_FORMAT =
  "Redis contains keys of Skein without a record of their format (`sk:{format}`). Restore a whole backup, or use another database or an empty one.";

/** Records that this process uses this Redis. Throws `unavailable` if this process cannot read its format. */
export async function joinRedis(redis: Pick<RedisConnection, "ask" | "run">): Promise<void> {
  // Every process creates this key once it has recorded the format.
  const isUsed = (await redis.ask((client) => client.exists(DEPLOYMENT))) === 1;
  for (;;) {
    const seen = await redis.ask((client) => client.get(FORMAT_KEY));
    if (seen === null && isUsed) throw new AppError("unavailable", WITHOUT_FORMAT);
    const record = JSON.stringify(assertFormat(seen));
    if (record === seen) return;
    if ((await redis.run(recordOnce, { key: FORMAT_KEY }, { seen: seen ?? "", record })) === record) return;
  }
}

/** Returns the record after this process has joined. Throws `unavailable` if this process cannot read the format. */
export function assertFormat(found: string | null): Format {
  return join("Redis", found === null ? undefined : formatIn(found), FORMAT);
}

/**
 * The form of the record that this process writes. `join` checks the numbers and throws for formats that this process
 * cannot use.
 */
const RECORD = /^\{"version":(\d+),"readableFrom":(\d+)\}$/;

function formatIn(text: string): Format {
  const [, version, readableFrom] = RECORD.exec(text) ?? [];
  if (version !== undefined && readableFrom !== undefined)
    return { version: Number(version), readableFrom: Number(readableFrom) };
  throw new AppError(
    "unavailable",
    "The key `sk:{format}` in Redis does not contain a Skein format. Use another database or an empty one.",
  );
}

// Changes the record only if it has not changed since it was read. An empty text means that there was no record.
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
