// Threads, runs and deferred calls in Redis. All changes go through changes.ts.

import type { Cursor, LogEntry } from "../../../agent/core/stores.ts";
import type { Kernel } from "../kernel.ts";
import { sharedEvents } from "../shared/events.ts";
import { createChanges, type ThreadRef } from "./changes.ts";
import type { StoreContext } from "./context.ts";
import { redisDue } from "./due.ts";
import type { CallPlace } from "./follow-ups.ts";
import { threadTag, tokenKey } from "./keys.ts";
import { redisReads } from "./reads.ts";
import { redisStaging } from "./staging.ts";

export function redisKernel(context: StoreContext): Kernel<ThreadRef> {
  const { redis, limits, pages } = context;
  const changes = createChanges(context);

  return {
    limits,
    ref: (owner, id) => ({ tag: threadTag(owner, id), owner }),
    change: changes.change,
    ...redisStaging(context),

    async logOf(lease) {
      const entries: LogEntry[] = [];
      const { last } = (await pages.look(lease)) ?? { last: 0 };
      let after: Cursor = { seq: Math.max(0, last - limits.eventsPerRun) };
      while (after.seq < last) {
        const page = await pages.read(lease, after);
        entries.push(...(page?.entries ?? []));
        after = page?.entries.at(-1) ?? { seq: last };
      }
      return entries;
    },

    async findCall(tokenHash) {
      const place = await redis.ask((client) => client.get(tokenKey(tokenHash)));
      if (place === null) return undefined;
      // Not validated, because only `keepToken` writes these.
      const [, tag, call_id] = JSON.parse(place) as CallPlace;
      return { thread: { tag }, call_id };
    },

    ...redisDue(context, changes),
    events: sharedEvents(context),
    ...redisReads(context, changes),
  };
}
