// The event log in memory: an append is a push, a read is a cursor.

import type { EventLog, RunKey } from "../../core/stores.ts";
import { follow, Log } from "../log.ts";
import { eventsExpired, noSuchRun } from "../refusals.ts";
import type { Book } from "./book.ts";
import type { RunEntry } from "./entries.ts";
import { record } from "./record.ts";

export function memoryEvents(book: Book): EventLog {
  return {
    async append(lease, events) {
      record(book, book.leased(lease), events);
    },

    async bounds(key) {
      return find(key)?.log?.bounds ?? { first: 0, last: 0 };
    },

    read(key, after, signal) {
      const run = find(key);
      if (!run) return failing(noSuchRun(key.run_id));
      const log = run.log ?? new Log(0, run.lastSeq).end();
      // The thread may have been packed and unpacked meanwhile.
      return follow(log, after, signal, (cursor) => find(key)?.log?.take(cursor) ?? expired(cursor));
    },
  };

  function find({ owner, thread_id, run_id }: RunKey): RunEntry | undefined {
    const run = book.findRun(owner, thread_id, run_id);
    if (run && book.eventsAreDue(run)) book.forgetEvents(run);
    return run;
  }
}

function expired(after: number): never {
  throw eventsExpired(after);
}

/** A reader learns what is wrong when it begins to read. */
async function* failing(error: Error): AsyncGenerator<never, void, void> {
  throw error;
}
