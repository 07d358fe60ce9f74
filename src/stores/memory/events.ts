// The event log in memory: an append is a push, a read is a cursor.

import type { EventLog, RunKey } from "../../core/stores.ts";
import { draftOf } from "../endings.ts";
import { cursorOf, follow, Log } from "../log.ts";
import { eventsExpired, noSuchRun } from "../refusals.ts";
import { assertSeen, seenOf } from "../seen.ts";
import type { Book } from "./book.ts";
import { commit } from "./commit-events.ts";
import type { RunEntry } from "./entries.ts";

export function memoryEvents(book: Book): EventLog {
  return {
    async append(lease, events) {
      commit(book, book.leased(lease), events.map(draftOf));
    },

    async bounds(key) {
      return find(key)?.log?.bounds ?? { first: 0, last: 0 };
    },

    async seen(key, cursor) {
      const run = find(key);
      return run ? seenOf(logOf(run).held, cursor) : 0;
    },

    async *read(key, after, signal) {
      const cursor = cursorOf(after);
      const run = find(key);
      if (!run) throw noSuchRun(key.run_id);
      const log = logOf(run);
      assertSeen(log.held, cursor);
      // The thread may have been packed and unpacked meanwhile.
      yield* follow(log, cursor, signal, ({ seq }) => find(key)?.log?.take(seq) ?? expired(seq));
    },
  };

  function find({ owner, thread_id, run_id }: RunKey): RunEntry | undefined {
    const run = book.findRun(owner, thread_id, run_id);
    if (run && book.eventsAreDue(run)) book.forgetEvents(run);
    return run;
  }
}

const logOf = (run: RunEntry) => run.log ?? new Log(0, run.lastSeq).end();

function expired(after: number): never {
  throw eventsExpired(after);
}
