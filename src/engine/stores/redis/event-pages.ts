// Reads pages of a run's event stream.

import type { RunKey } from "../../../agent/core/stores.ts";
import type { Limits } from "../options.ts";
import { createPages, PAGE_BYTES, type Pages, type StoredPage } from "../shared/event-pages.ts";
import type { RedisConnection } from "./connection.ts";
import { readEvents } from "./event-scripts.ts";
import { eventsKey, threadKeys, threadTag } from "./keys.ts";
import { type Retention, timeText } from "./retention.ts";
import { entriesOf } from "./row-format.ts";

export function redisPages(
  redis: RedisConnection,
  { eventsPerRun: kept }: Limits,
  retention: Retention,
): Pages {
  const eventsTtl = timeText(retention.eventsMs);
  return createPages(kept, readStored);

  async function readStored(run: RunKey, after: number, count: number): Promise<StoredPage | undefined> {
    const { owner, thread_id, run_id } = run;
    const thread = threadTag(owner, thread_id);
    const keys = { ...threadKeys(thread), events: eventsKey(thread, run_id) };
    const args = { run: run_id, after, count, bytes: PAGE_BYTES, kept, retention: eventsTtl };
    const found = await redis.run(readEvents, keys, args);
    if (!found) return undefined;
    const [last, state, rows, life, epoch, epochs] = found;
    retention.used(owner, thread_id, life);
    return { last, epoch, state, epochs, entries: entriesOf(rows) };
  }
}
