// The event log in memory. An append pushes an entry, and a read uses a cursor.

import type { Cursor, EventLog, RunKey } from "../../../agent/core/stores.ts";
import { eventsExpired, noSuchRun } from "../errors.ts";
import { cursorOf, follow, Log, type ReadStart } from "../log.ts";
import { pendingEvent } from "../outcomes.ts";
import { assertSeen, seenOf } from "../seen.ts";
import { commit } from "./commit-events.ts";
import type { MemoryThreads } from "./memory-threads.ts";
import type { RunEntry } from "./records.ts";

export function memoryEvents(memory: MemoryThreads): EventLog {
  return {
    async append(lease, events) {
      commit(memory, memory.leased(lease), events.map(pendingEvent));
    },

    async bounds(key) {
      return find(key)?.log?.bounds ?? { first: 0, last: 0 };
    },

    async seen(key, cursor) {
      const run = find(key);
      return run ? seenOf(logOf(run).held, cursor) : 0;
    },

    // Memory never refuses a write.
    fail() {},

    read: (key, after, signal) => follow(() => open(key, cursorOf(after)), signal),
  };

  function open(key: RunKey, after: Cursor): ReadStart {
    const run = find(key);
    if (!run) throw noSuchRun(key.run_id);
    const log = logOf(run);
    assertSeen(log.held, after);
    // The thread may have been compressed and uncompressed in the meantime.
    return { log, after, older: ({ seq }) => find(key)?.log?.take(seq) ?? expired(seq) };
  }

  function find({ owner, thread_id, run_id }: RunKey): RunEntry | undefined {
    const run = memory.findRun(owner, thread_id, run_id);
    if (run && memory.eventsAreDue(run)) memory.forgetEvents(run);
    return run;
  }
}

const logOf = (run: RunEntry) => run.log ?? new Log(0, run.lastSeq).end();

function expired(after: number): never {
  throw eventsExpired(after);
}
