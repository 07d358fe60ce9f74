// Reads pages of a run's log.

import type { RunStatus } from "../../core/records.ts";
import { isSettled } from "../../core/records.ts";
import type { RunKey } from "../../core/stores.ts";
import { firstBatch } from "../log.ts";
import type { Limits } from "../options.ts";
import { ownerText, rowKey } from "../row-keys.ts";
import { type EventRow, entriesOf } from "../rows.ts";
import { assertSeen } from "../seen.ts";
import type { Page, Pages } from "../shared/event-pages.ts";
import { type Database, timeOf } from "./database.ts";
import type { Lifetime } from "./lifetime.ts";

/** What is read in one go: so many rows, or so many bytes. */
const ROWS = 64;
const BYTES = 256 * 1024;

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

/** Rows whose predecessors take less than BYTES; the sizes are known without reading the texts. */
const SELECT_LOG = `SELECT ${timeOf(6)} AS now, runs.status, runs.ended_at, runs.has_events, turns.epoch,
  coalesce(turns.last_seq, runs.last_seq) AS last, runs.epochs,
  (SELECT coalesce(json_agg(found ORDER BY last_seq), '[]') FROM (
    SELECT last_seq, epoch, event, body FROM (
      SELECT *, sum(octet_length(body)) OVER (ORDER BY last_seq) - octet_length(body) AS before FROM (
        SELECT last_seq, epoch, event, body FROM events
        WHERE owner = $1 AND thread_id = $2 AND run_id = $3 AND last_seq > $4 ORDER BY last_seq LIMIT $5) AS next) AS sized
    WHERE before < ${BYTES}) AS found) AS rows
FROM runs LEFT JOIN turns ON turns.owner = $1 AND turns.thread_id = $2 AND turns.run_id = $3
WHERE runs.owner = $1 AND runs.thread_id = $2 AND runs.id = $3`;

export function createPages(database: Database, limits: Limits, lifetime: Lifetime): Pages {
  const { eventsPerRun: kept, eventRetentionMs } = limits;

  return {
    async read(run, after) {
      const found = await page(run, after.seq, ROWS);
      if (found) assertSeen(found.held, after);
      return found;
    },
    look: (run) => page(run, 0, 0),
  };

  async function page(run: RunKey, after: number, rows: number): Promise<Page | undefined> {
    await lifetime.visit([ownerText(run.owner), run.thread_id]);
    const values = [...rowKey(run), after, rows, database.clock()];
    const [found] = await database.query<LogRow>(SELECT_LOG, values);
    if (!found) return undefined;
    const { last, epoch } = found;
    const state = stateOf(found);
    const first = state === "gone" ? last + 1 : Math.max(1, last - kept + 1);
    const epochs = found.epochs.map(Number);
    const held = { first, last, epochOf: (seq: number) => epochAt(epochs, seq) };
    const entries = state === "gone" ? [] : found.rows.flatMap(entriesOf).filter(({ seq }) => seq > after);
    return { last, epoch: epoch ?? epochs.at(-2) ?? 0, state, held, entries: firstBatch(entries, 0) };
  }

  function stateOf({ status, ended_at, has_events, now }: LogRow): Page["state"] {
    if (!isSettled(status)) return "live";
    return has_events && (ended_at ?? 0) + eventRetentionMs > now ? "ended" : "gone";
  }
}

/** `epochs` are each followed by the seq of its first entry. */
function epochAt(epochs: readonly number[], seq: number): number | undefined {
  const at = epochs.findLastIndex((first, index) => index % 2 === 1 && first <= seq);
  return epochs[at - 1];
}
