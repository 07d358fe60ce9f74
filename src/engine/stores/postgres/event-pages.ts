// Reads pages of a run's log.

import type { RunStatus } from "../../../agent/core/records.ts";
import { isSettled } from "../../../agent/core/records.ts";
import type { RunKey } from "../../../agent/core/stores.ts";
import type { Limits } from "../options.ts";
import { ownerText, rowKey } from "../row-keys.ts";
import { type EventRow, entriesOf } from "../rows.ts";
import { createPages, PAGE_BYTES, type Pages, type StoredPage } from "../shared/event-pages.ts";
import { type Database, timeOf } from "./database.ts";
import type { Retention } from "./retention.ts";

interface LogRow {
  readonly now: number;
  readonly status: RunStatus;
  readonly ended_at: number | null;
  readonly has_events: boolean;
  readonly epoch: number | null;
  readonly last: number;
  readonly epochs: readonly string[];
  readonly rows: readonly EventRow[];
}

/**
 * Selects rows for as long as the preceding rows take less than `PAGE_BYTES`. PostgreSQL knows the sizes without
 * reading the texts.
 */
const SELECT_LOG = `SELECT ${timeOf(6)} AS now, runs.status, runs.ended_at, runs.has_events, turns.epoch,
  coalesce(turns.last_seq, runs.last_seq) AS last, runs.epochs,
  (SELECT coalesce(json_agg(found ORDER BY last_seq), '[]') FROM (
    SELECT last_seq, epoch, event, body FROM (
      SELECT *, sum(octet_length(body)) OVER (ORDER BY last_seq) - octet_length(body) AS before FROM (
        SELECT last_seq, epoch, event, body FROM events
        WHERE owner = $1 AND thread_id = $2 AND run_id = $3 AND last_seq > $4 ORDER BY last_seq LIMIT $5) AS next) AS sized
    WHERE before < ${PAGE_BYTES}) AS found) AS rows
FROM runs LEFT JOIN turns ON turns.owner = $1 AND turns.thread_id = $2 AND turns.run_id = $3
WHERE runs.owner = $1 AND runs.thread_id = $2 AND runs.id = $3`;

export function postgresPages(database: Database, limits: Limits, retention: Retention): Pages {
  const { eventsPerRun: kept, eventRetentionMs } = limits;
  return createPages(kept, readStored);

  async function readStored(run: RunKey, after: number, count: number): Promise<StoredPage | undefined> {
    await retention.visit([ownerText(run.owner), run.thread_id]);
    const values = [...rowKey(run), after, count, database.clock()];
    const [found] = await database.query<LogRow>(SELECT_LOG, values);
    if (!found) return undefined;
    const epochs = found.epochs.map(Number);
    const epoch = found.epoch ?? epochs.at(-2) ?? 0;
    return { last: found.last, epoch, state: stateOf(found), epochs, entries: found.rows.flatMap(entriesOf) };
  }

  function stateOf({ status, ended_at, has_events, now }: LogRow): StoredPage["state"] {
    if (!isSettled(status)) return "live";
    return has_events && (ended_at ?? 0) + eventRetentionMs > now ? "ended" : "gone";
  }
}
