// What a run has said, read from its stream.

import type { LogEntry, RunKey } from "../../core/stores.ts";
import { firstBatch } from "../log.ts";
import type { Limits } from "../options.ts";
import { eventsExpired } from "../refusals.ts";
import type { Connection } from "./connection.ts";
import { eventsKey, threadKeys, threadTag } from "./keys.ts";
import { type Lifetime, timeText } from "./lifetime.ts";
import { entriesOf } from "./rows.ts";
import { readEvents } from "./scripts/read-events.ts";

/** What is read in one go: so many entries, or so many bytes. */
const ENTRIES = 64;
const BYTES = 256 * 1024;

export interface Page {
  /** The run's last seq. */
  readonly last: number;
  readonly state: "live" | "ended" | "gone";
  /** The entries after the cursor, as many as a batch holds. */
  readonly entries: readonly LogEntry[];
}

/** All throw `unavailable`. */
export interface Pages {
  /** Where a run stands, and what comes after `after`, at one moment. Undefined when there is no such run. */
  read(run: RunKey, after: number): Promise<Page | undefined>;
  /** Where it stands. */
  look(run: RunKey): Promise<Page | undefined>;
  /** A batch of the entries after `after`, of which there are some. Throws `events_expired`. */
  after(run: RunKey, after: number): Promise<readonly LogEntry[]>;
}

export function createPages(redis: Connection, limits: Limits, lifetime: Lifetime): Pages {
  const { eventsPerRun: kept, eventRetentionMs } = limits;
  const retention = timeText(eventRetentionMs);

  const pages: Pages = {
    read: (run, after) => page(run, after, ENTRIES),
    look: (run) => page(run, 0, 0),
    async after(run, after) {
      const { entries = [] } = (await pages.read(run, after)) ?? {};
      if (entries[0]?.seq !== after + 1) throw eventsExpired(after);
      return entries;
    },
  };
  return pages;

  async function page(run: RunKey, after: number, count: number): Promise<Page | undefined> {
    const { owner, thread_id, run_id } = run;
    const thread = threadTag(owner, thread_id);
    const keys = { ...threadKeys(thread), events: eventsKey(thread, run_id) };
    const args = { run: run_id, after, count, bytes: BYTES, kept, retention };
    const found = await redis.run(readEvents, keys, args);
    if (!found) return undefined;
    const [last, state, rows, life] = found;
    lifetime.used(owner, thread_id, life);
    const entries = entriesOf(rows).filter(({ seq }) => seq > after);
    return { last, state, entries: firstBatch(entries, 0) };
  }
}
