// The event log in Redis: an append is a row of a stream, a read is a cursor. Who follows closely is served from this
// process's memory.

import type { EventLog, LogEntry } from "../../core/stores.ts";
import { checkCursor, follow, Log } from "../log.ts";
import { eventsExpired, noSuchRun } from "../refusals.ts";
import type { Engine } from "./engine.ts";

export function redisEvents({ pages, feeds, writer, limits }: Engine): EventLog {
  return {
    async append(lease, events) {
      return writer.append(lease, events);
    },

    async bounds(run) {
      const { last, state } = (await pages.look(run)) ?? { last: 0, state: "gone" };
      if (state === "gone" || last === 0) return { first: 0, last: 0 };
      return { first: Math.max(1, last - limits.eventsPerRun + 1), last };
    },

    async *read(run, after, signal) {
      checkCursor(after);
      const page = await pages.read(run, after);
      if (!page) throw noSuchRun(run.run_id);
      const { last, state, entries } = page;
      if (after > last) throw eventsExpired(after);
      if (entries.length > 0 && !signal.aborted) yield entries;
      const cursor = entries.at(-1)?.seq ?? after;
      const older = (each: number) => pages.after(run, each);
      if (state !== "live") return yield* follow(new Log(0, last).end(), cursor, signal, older);
      try {
        yield* live(feeds.open(run, last), cursor, signal, older);
      } finally {
        feeds.leave(run);
      }
    },
  };
}

/** The page may have been ahead of what has come so far. */
async function* live(
  log: Log,
  cursor: number,
  ...rest: [AbortSignal, (after: number) => Promise<readonly LogEntry[]>]
) {
  for await (const batch of follow(log, Math.min(cursor, log.last), ...rest)) {
    const isNew = batch[0] && batch[0].seq > cursor;
    const news = isNew ? batch : batch.filter(({ seq }) => seq > cursor);
    if (news.length > 0) yield news;
  }
}
