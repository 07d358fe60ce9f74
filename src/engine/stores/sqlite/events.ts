// The event log in the file. An append adds a row, and a read uses a cursor. Readers that follow closely are served
// from memory.

import { isSettled, type RunStatus } from "../../../agent/core/records.ts";
import type { Cursor, EventLog, LogEntry, RunKey } from "../../../agent/core/stores.ts";
import { eventsExpired, noSuchRun } from "../errors.ts";
import { cursorOf, firstBatch, follow, Log, type ReadStart } from "../log.ts";
import { ownerText, rowKey } from "../row-keys.ts";
import { type EventRow, entriesOf } from "../rows.ts";
import { assertSeen, type LogWindow, seenOf } from "../seen.ts";
import type { StoreContext } from "./context.ts";

interface RunRow {
  readonly status: RunStatus;
  readonly ended_at: number;
  readonly last_seq: number;
  readonly has_events: number;
}

interface FoundLog {
  readonly log: Log;
  readonly isKept: boolean;
}

export function sqliteEvents({ database, live, writer, retention, limits }: StoreContext): EventLog {
  const { now, eventRetentionMs, eventsPerRun } = limits;
  const select = database.query<RunRow>(
    "SELECT status, ended_at, last_seq, has_events FROM runs WHERE owner = ? AND thread_id = ? AND id = ?",
  );
  const selectRows = database.query<EventRow>(`
    SELECT last_seq, epoch, event, body FROM events
    WHERE owner = ? AND thread_id = ? AND run_id = ? AND last_seq > ? ORDER BY last_seq`);

  const selectEpoch = database.query<{ epoch: number }>(`
    SELECT epoch FROM events
    WHERE owner = ? AND thread_id = ? AND run_id = ? AND last_seq >= ? ORDER BY last_seq LIMIT 1`);

  return {
    async append(lease, events) {
      return writer.append(lease, events);
    },

    async bounds(key) {
      const { log, isKept } = (await find(key)) ?? {};
      if (!log || !isKept || log.last === 0) return { first: 0, last: 0 };
      return { first: Math.max(1, log.last - eventsPerRun + 1), last: log.last };
    },

    async seen(key, cursor) {
      const found = await find(key);
      return found ? seenOf(heldOf(key, found), cursor) : 0;
    },

    fail: (key, why) => live.find(key)?.log.close(why),

    read: (key, after, signal) => follow(() => open(key, cursorOf(after)), signal),
  };

  async function open(key: RunKey, after: Cursor): Promise<ReadStart> {
    const found = await find(key);
    if (!found) throw noSuchRun(key.run_id);
    assertSeen(heldOf(key, found), after);
    const { log, isKept } = found;
    return {
      log,
      after,
      older({ seq }) {
        const batch = isKept && log.last - seq <= eventsPerRun ? batchOf(key, seq, log.last) : [];
        if (batch[0]?.seq !== seq + 1) throw eventsExpired(seq);
        return batch;
      },
    };
  }

  function heldOf(key: RunKey, { log, isKept }: FoundLog): LogWindow {
    const { last } = log;
    const first = isKept ? Math.max(1, last - eventsPerRun + 1) : last + 1;
    const epochOf = (seq: number) =>
      log.held.epochOf(seq) ?? database.read(() => selectEpoch.get(...rowKey(key), seq)?.epoch);
    return { first, last, epochOf };
  }

  /** Finds the log in a tick of the event loop, after all removed data of its thread has been deleted. */
  async function find(key: RunKey): Promise<FoundLog | undefined> {
    const visit = () => retention.visit(ownerText(key.owner), key.thread_id);
    for (let rest = visit(); rest; rest = visit()) await rest;
    database.assertOpen();
    const open = live.find(key);
    if (open) return { log: open.log, isKept: true };
    return database.read(() => {
      const row = select.get(...rowKey(key));
      if (!row) return undefined;
      if (!isSettled(row.status)) return { log: live.open(key).log, isKept: true };
      const isKept = row.has_events === 1 && row.ended_at + eventRetentionMs > now();
      return { log: new Log(0, row.last_seq).end(), isKept };
    });
  }

  /** Returns the entries after `cursor`, up to the last one on disk. */
  function batchOf(key: RunKey, cursor: number, last: number): readonly LogEntry[] {
    return database.read(() => {
      const entries: LogEntry[] = [];
      for (const row of selectRows.each(...rowKey(key), cursor)) {
        entries.push(...entriesOf(row).filter(({ seq }) => seq > cursor && seq <= last));
        const batch = firstBatch(entries, 0);
        if (batch.length < entries.length) return batch;
      }
      return entries;
    });
  }
}
