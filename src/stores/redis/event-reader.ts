// Reads pages of a run's event stream.

import type { RunKey } from "../../core/stores.ts";
import { firstBatch } from "../log.ts";
import type { Limits } from "../options.ts";
import { assertSeen } from "../seen.ts";
import type { Page, Pages } from "../shared/event-pages.ts";
import type { Connection } from "./connection.ts";
import { readEvents } from "./event-scripts.ts";
import { eventsKey, threadKeys, threadTag } from "./keys.ts";
import { type Lifetime, timeText } from "./lifetime.ts";
import { entriesOf } from "./row-format.ts";

/** What is read in one go: so many entries, or so many bytes. */
const ENTRIES = 64;
const BYTES = 256 * 1024;

export function createPages(redis: Connection, limits: Limits, lifetime: Lifetime): Pages {
  const { eventsPerRun: kept } = limits;
  const retention = timeText(lifetime.eventsMs);

  return {
    async read(run, after) {
      const found = await page(run, after.seq, ENTRIES);
      if (found) assertSeen(found.held, after);
      return found;
    },
    look: (run) => page(run, 0, 0),
  };

  async function page(run: RunKey, after: number, count: number): Promise<Page | undefined> {
    const { owner, thread_id, run_id } = run;
    const thread = threadTag(owner, thread_id);
    const keys = { ...threadKeys(thread), events: eventsKey(thread, run_id) };
    const args = { run: run_id, after, count, bytes: BYTES, kept, retention };
    const found = await redis.run(readEvents, keys, args);
    if (!found) return undefined;
    const [last, state, rows, life, epoch, epochs] = found;
    lifetime.used(owner, thread_id, life);
    const entries = entriesOf(rows).filter(({ seq }) => seq > after);
    const first = state === "gone" ? last + 1 : Math.max(1, last - kept + 1);
    const held = { first, last, epochOf: (seq: number) => epochAt(epochs, seq) };
    return { last, epoch, state, held, entries: firstBatch(entries, 0) };
  }
}

/** `epochs` are each followed by the seq of its first entry. */
function epochAt(epochs: readonly number[], seq: number): number | undefined {
  const at = epochs.findLastIndex((first, index) => index % 2 === 1 && first <= seq);
  return epochs[at - 1];
}
