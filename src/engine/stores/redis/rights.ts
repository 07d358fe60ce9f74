// The rights that Redis's user needs. They are checked at startup, so no run fails because of a missing right.

import { AppError } from "../../../agent/core/errors.ts";
import { docsPage } from "../../../lib/docs.ts";
import { isReply } from "./client.ts";
import { type RedisConnection, script } from "./connection.ts";
import { channelsOf, PROBE, probeChannel } from "./keys.ts";

/** All commands that scripts or the client send with keys. */
export const COMMANDS = [
  ...[
    "EVAL",
    "EVALSHA",
    "EXISTS",
    "GET",
    "HDEL",
    "HEXISTS",
    "HGET",
    "HGETALL",
    "HINCRBY",
    "HKEYS",
    "HLEN",
    "HMGET",
  ],
  ...[
    "HSET",
    "HSETNX",
    "HSTRLEN",
    "HVALS",
    "LINDEX",
    "LLEN",
    "LPOS",
    "LPUSH",
    "LRANGE",
    "LREM",
    "LTRIM",
    "PERSIST",
  ],
  ...[
    "PEXPIRE",
    "PEXPIREAT",
    "PTTL",
    "RENAME",
    "RPUSH",
    "SADD",
    "SET",
    "SMEMBERS",
    "UNLINK",
    "XADD",
    "XRANGE",
    "XTRIM",
  ],
  ...[
    "ZADD",
    "ZCARD",
    "ZCOUNT",
    "ZRANDMEMBER",
    "ZRANGE",
    "ZRANGEBYLEX",
    "ZRANGEBYSCORE",
    "ZREM",
    "ZREMRANGEBYSCORE",
  ],
  ...["ZREVRANGEBYSCORE", "ZSCORE", "TIME", "PING"],
] as const;

/** Refers to the page that lists the rights. */
const HELP = `${docsPage("guides/redis.md")} lists the rights that it needs.`;

/** Throws `config_invalid` if the user lacks rights, or `unavailable`. */
export async function checkRights(
  redis: Pick<RedisConnection, "run">,
  { isCluster, database, waits }: { isCluster: boolean; database: number; waits: boolean },
): Promise<void> {
  const args = {
    channel: probeChannel(channelsOf(database)),
    ...(isCluster
      ? { publish: "SPUBLISH", subscribe: "SSUBSCRIBE" }
      : { publish: "PUBLISH", subscribe: "SUBSCRIBE" }),
  };
  const commands = waits ? [...COMMANDS, "WAIT"] : COMMANDS;
  const [refused = "", ...missing] = await redis
    .run(missingRights, { probe: PROBE }, args, commands)
    .catch((error) => {
      throw lacking(error);
    });
  if (missing.length > 0)
    throw new AppError(
      "config_invalid",
      `Redis's user lacks the rights to ${listOf(missing)} on keys \`sk:*\`; ${HELP}`,
    );
  if (refused !== "")
    throw new AppError(
      "config_invalid",
      `Redis's user lacks the right to publish and subscribe on channels \`sk:*\` (\`&sk:*\`); ${HELP}`,
    );
}

const listOf = (commands: readonly string[]) =>
  commands.map((name) => `\`${name.toLowerCase()}\``).join(", ");

/** If a user may not even ask for its rights, Redis names the missing right in its error. */
function lacking(error: unknown): unknown {
  const cause = error instanceof Error ? error.cause : undefined;
  if (!isReply(cause) || !cause.message.startsWith("NOPERM")) return error;
  return new AppError("config_invalid", `Redis's user lacks a right: ${cause.message}; ${HELP}`, { cause });
}

// Returns the channel if the user cannot use it, followed by the commands that the user cannot use. Servers before
// version 7 lack this check and are assumed to allow everything.
const missingRights = script<string[]>()({
  kind: "reads",
  keys: ["probe"],
  args: ["channel", "publish", "subscribe"],
  lua: `
local function may(...)
  if not redis.acl_check_cmd then return true end
  local is_known, answer = pcall(redis.acl_check_cmd, ...)
  return not is_known or answer
end
local found = {''}
if not (may(publish, channel, '') and may(subscribe, channel)) then found[1] = channel end
for at = REST, #ARGV do
  if not may(ARGV[at], probe) then table.insert(found, ARGV[at]) end
end
return found`,
});
