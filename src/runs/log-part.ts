// A part of a run's log as it is now, without waiting for more of it.

import type { EventLog, LogEntry, RunKey } from "../core/stores.ts";

/** The entries after the number `after`, to the number `last`, which is there. Throws `events_expired`. */
export async function* logPart(
  log: EventLog,
  run: RunKey,
  { after, last }: { after: number; last: number },
): AsyncGenerator<LogEntry, void, void> {
  if (after >= last) return;
  const reading = new AbortController();
  try {
    for await (const batch of log.read(run, after, reading.signal))
      for (const entry of batch) {
        if (entry.seq <= last) yield entry;
        if (entry.seq >= last) return;
      }
  } finally {
    reading.abort();
  }
}
