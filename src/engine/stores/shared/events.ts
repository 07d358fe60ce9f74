// The event log in a store that several processes share. A read uses a cursor. Readers at the end of an active run are
// served from this process's memory.

import type { Cursor, EventLog, LogEntry, RunKey } from "../../../agent/core/stores.ts";
import { eventsExpired, noSuchRun } from "../errors.ts";
import { cursorOf, follow, Log, type ReadStart } from "../log.ts";
import { seenOf } from "../seen.ts";
import type { Pages } from "./event-pages.ts";
import type { LiveTails } from "./live-tails.ts";

type Batches = AsyncGenerator<readonly LogEntry[], void, void>;

interface Parts {
  readonly pages: Pick<Pages, "look">;
  /** The pages that viewers read. */
  readonly replays: Pick<Pages, "read">;
  readonly feeds: LiveTails;
  readonly writer: Pick<EventLog, "append">;
}

export function sharedEvents({ pages, replays, feeds, writer }: Parts): EventLog {
  return {
    async append(lease, events) {
      return writer.append(lease, events);
    },

    async bounds(run) {
      const { first, last } = (await pages.look(run))?.held ?? { first: 1, last: 0 };
      return first > last ? { first: 0, last: 0 } : { first, last };
    },

    async seen(run, cursor) {
      const found = await pages.look(run);
      return found ? seenOf(found.held, cursor) : 0;
    },

    fail: (run, why) => feeds.fail(run, why),

    async *read(run, after, signal) {
      let cursor = cursorOf(after);
      for (let isFirst = true; !signal.aborted; isFirst = false) {
        const page = await replays.read(run, cursor);
        if (!page) throw isFirst ? noSuchRun(run.run_id) : eventsExpired(cursor.seq);
        const { last, state, entries } = page;
        if (entries.length > 0 && !signal.aborted) yield entries;
        cursor = entries.at(-1) ?? cursor;
        const place = { after: cursor, older: olderOf(run) };
        if (state !== "live") return yield* follow(() => ({ log: new Log(0, last).end(), ...place }), signal);
        const feed = feeds.open(run, page);
        try {
          for await (const batch of live({ log: feed.log, ...place }, signal)) {
            yield batch;
            cursor = batch.at(-1) ?? cursor;
          }
          return;
        } catch (error) {
          // Compares the entries that each reader has seen with the current log.
          if (!feed.isStale) throw error;
        } finally {
          feeds.leave(feed);
        }
      }
    },
  };

  function olderOf(run: RunKey) {
    return async (after: Cursor) => {
      let page = await replays.read(run, after);
      // A page that another viewer requested may be older than the entries needed here.
      if (page && page.last <= after.seq) page = await replays.read(run, after);
      const entries = page?.entries ?? [];
      if (entries[0]?.seq !== after.seq + 1) throw eventsExpired(after.seq);
      return entries;
    };
  }
}

/** The page may have been ahead of the live entries received so far. */
async function* live(at: ReadStart, signal: AbortSignal): Batches {
  const { log, after: cursor } = at;
  const after = cursor.seq > log.last ? { seq: log.last } : cursor;
  for await (const batch of follow(() => ({ ...at, after }), signal)) {
    const isNew = batch[0] && batch[0].seq > cursor.seq;
    const news = isNew ? batch : batch.filter(({ seq }) => seq > cursor.seq);
    if (news.length > 0) yield news;
  }
}
