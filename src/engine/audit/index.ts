// The audit trail of each tenant: who did what to what, and when. Entries are written in the background, so requests
// and runs never wait for them. Entries are never changed.

import { setTimeout as delay } from "node:timers/promises";
import { type Documents, newVersion } from "../../agent/core/documents.ts";
import type { Page } from "../../agent/core/stores.ts";
import { atMostEvery } from "../../lib/at-most-every.ts";
import { backoff } from "../../lib/backoff.ts";
import type { Logger } from "../../lib/logger.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { createAppend } from "./append.ts";
import { type AuditEntry, entryOf, keyOf, type NewEntry } from "./entry.ts";
import { listTrail, type TrailQuery } from "./list.ts";
import { type Batch, createQueue, type Queue } from "./queue.ts";
import { createRetention, type KeptEntries } from "./retention.ts";

export interface AuditOptions {
  readonly documents: Documents;
  readonly logger: Logger;
  readonly kept: KeptEntries;
  /** Also writes each entry to the log. */
  readonly isLogged: boolean;
  /** Called for each entry after it is written. Must not throw. */
  onWritten(entry: AuditEntry): Promise<void>;
  /** Counts entries. Must return at once and not throw. */
  onCounted(outcome: "written" | "dropped", entries: number): void;
}

export interface Audit {
  /** Adds an entry. Returns at once and never throws. */
  record(entry: NewEntry): void;
  /** Returns a tenant's entries, newest first. Throws `invalid_request` for a cursor from another list. */
  list(tenant: string, query: TrailQuery): Promise<Page<AuditEntry>>;
  open(): void;
  /** Writes the waiting entries, which takes at most a few seconds. */
  close(): Promise<void>;
}

const BATCH = 100;
/** How long an entry waits for others to form a batch, in milliseconds. */
const GATHER_MS = 250;
/** The maximum time to write the last entries before the process ends, in milliseconds. */
const CLOSE_MS = 5_000;
const COMPLAIN_MS = 60_000;
const PAUSE = { base: 500, cap: 30_000, jitter: 0.5 };
/** The caller must open and close the trail. */
export function createAudit(options: AuditOptions): Audit {
  const { documents, logger, kept, isLogged, onCounted } = options;
  const queue = createQueue();
  const retention = createRetention(documents, kept, logger);
  const writer = createWriter(options, queue, createAppend(documents, retention, kept.count));
  const complain = atMostEvery(COMPLAIN_MS, (tenant: string, dropped) => {
    logger.error(
      { tenant, dropped },
      "audit trail entries were dropped because too many were waiting for the store",
    );
  });
  return {
    record(noted) {
      const entry = entryOf(noted);
      if (isLogged) logger.info({ audit: entry }, "audit");
      if (!queue.add(entry)) {
        onCounted("dropped", 1);
        complain(entry.tenant);
      }
      writer.wake();
    },
    list: (tenant, query) => listTrail(documents, tenant, query),
    open: () => retention.open(),
    async close() {
      await retention.close();
      const left = await writer.close();
      if (left + queue.size === 0) return;
      logger.error({ entries: left + queue.size }, "audit trail entries were lost because the store failed");
    },
  };
}

/**
 * Writes batch after batch. If the store refuses a batch, retries it under the same keys until the store accepts it.
 */
function createWriter(
  { logger, onWritten, onCounted }: AuditOptions,
  queue: Queue,
  append: ReturnType<typeof createAppend>,
) {
  const closing = new AbortController();
  let writing: Promise<void> | undefined;
  let unwritten = 0;
  const complain = atMostEvery(COMPLAIN_MS, (err: unknown) =>
    logger.warn({ err }, "could not write to the audit trail; will retry"),
  );

  const writeUntilTaken = async ({ tenant, entries, dropped }: Batch) => {
    const all = dropped === 0 ? entries : [...entries, gapOf(tenant, dropped)];
    const prepared = { tenant, entries: all, keys: all.map(keyOf), version: newVersion() };
    unwritten = all.length;
    for (let attempt = 0; ; attempt += 1)
      try {
        await append(prepared);
        break;
      } catch (error) {
        complain(error);
        if (closing.signal.aborted) return;
        await pause(backoff(attempt, PAUSE), closing.signal);
      }
    unwritten = 0;
    onCounted("written", all.length);
    for (const entry of all) await onWritten(entry);
  };
  const writeAll = async () => {
    await pause(GATHER_MS, closing.signal);
    while (unwritten === 0 && !queue.isEmpty) {
      const batch = queue.take(BATCH);
      if (batch) await writeUntilTaken(batch);
    }
  };
  const wake = () => {
    writing ??= writeAll().finally(() => {
      writing = undefined;
      // An entry arrived after the last check.
      if (unwritten === 0 && !queue.isEmpty) wake();
    });
  };
  return {
    wake,
    /** Returns the number of entries of a batch that the store did not accept. */
    async close(): Promise<number> {
      const ends = pause(CLOSE_MS, undefined);
      closing.abort();
      await Promise.race([writing, ends]);
      if (unwritten === 0) wake();
      await Promise.race([writing, ends]);
      return unwritten;
    },
  };
}

const gapOf = (tenant: string, dropped: number): AuditEntry =>
  entryOf({
    tenant,
    actor: { type: "server", id: "skein" },
    action: "audit.gap",
    outcome: "failed",
    dropped,
  });

/** Ends early when the signal aborts. */
const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  delay(ms, undefined, { ref: false, ...omitUndefined({ signal }) }).catch(() => {});
