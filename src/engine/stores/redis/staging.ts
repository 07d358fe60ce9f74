// Messages of a thread that is being copied are stored under separate keys in the thread's slot, until `commit` renames
// them. Nothing else reads them. They expire if the copy is abandoned.

import type { Owner } from "../../../protocol/ids.ts";
import type { Kernel } from "../kernel.ts";
import { script } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { stagedKeys } from "./keys.ts";

/** The number of milliseconds within which a copy must add its next slice or end. */
const STAGED_MS = 600_000;

/**
 * Adds to the staged messages. The unnamed arguments are pairs of an id and a text. A repeated call has no further
 * effect.
 */
const stageMessages = script<number>()({
  kind: "adds",
  keys: ["staged", "staged_ids"],
  args: ["ttl"],
  lua: `
for at = REST, #ARGV, 2 do
  if redis.call('HSETNX', staged_ids, ARGV[at], redis.call('LLEN', staged)) == 1 then
    redis.call('RPUSH', staged, ARGV[at + 1])
  end
end
redis.call('PEXPIRE', staged, ttl)
return redis.call('PEXPIRE', staged_ids, ttl)`,
});

interface CopiedThread {
  readonly tag: string;
  readonly owner?: Owner | undefined;
}

export function redisStaging({
  redis,
}: Pick<StoreContext, "redis">): Pick<Kernel<CopiedThread>, "stage" | "unstage"> {
  return {
    async stage({ tag, owner }, token, messages) {
      const rest = messages.flatMap(({ id, text }) => [id, text]);
      await redis.runFor(owner?.tenant ?? "")(
        stageMessages,
        stagedKeys(tag, token),
        { ttl: STAGED_MS },
        rest,
      );
    },

    async unstage({ tag }, token) {
      const { staged, staged_ids } = stagedKeys(tag, token);
      await redis.ask((client) => client.unlink(staged, staged_ids));
    },
  };
}
