// Deletes old and excess entries from trails. Any process can do this, for all tenants in turn.

import { type ClaimedDocument, finish } from "../../agent/core/document-claims.ts";
import { type Documents, newVersion, type OwnedCollection, retain } from "../../agent/core/documents.ts";
import type { Logger } from "../../lib/logger.ts";
import { createDueWorker } from "../due-worker.ts";
import { trailOf } from "./entry.ts";

export interface KeptEntries {
  /** How long entries are kept, in milliseconds. May be infinite. */
  readonly ms: number;
  /**
   * The maximum number of entries per tenant. It must be larger than a few batches, because entries from the
   * same millisecond as the oldest kept entry may be deleted.
   */
  readonly count: number;
}

const KIND = "audit_retention";
const KEY = "retention";
const HOUR = 3_600_000;
/** The time between two deletions in milliseconds, for a tenant that has entries and for a tenant that has none. */
const EVERY_MS = HOUR;
const EVERY_EMPTY_MS = 24 * HOUR;
const POLL_MS = 60_000;
const LEASE_MS = 120_000;
const AT_ONCE = 2;

const markOf = (tenant: string): OwnedCollection => ({ kind: KIND, tenant });

/** The caller must open and close the worker. */
export function createRetention(documents: Documents, kept: KeptEntries, logger: Logger) {
  const work = async (claimed: ClaimedDocument, signal: AbortSignal) => {
    const { collection, body, now } = claimed;
    await retain(documents, trailOf(collection.tenant), kept, signal);
    const { items } = await documents.page(trailOf(collection.tenant), { order: "key", limit: 1 });
    // Keeps the document, because another process may know that it exists and append to the trail now.
    await finish(documents, claimed, { body, due: now + (items.length > 0 ? EVERY_MS : EVERY_EMPTY_MS) });
  };
  const due = { kind: KIND, work, leaseMs: LEASE_MS, everyMs: POLL_MS, atOnce: AT_ONCE };
  const worker = createDueWorker(documents, due, logger);
  return {
    open: () => worker.open(),
    close: () => worker.close(),
    /** Deletes excess entries now. */
    trim: (tenant: string) => retain(documents, trailOf(tenant), { count: kept.count }),
    /** Call this before the process first appends to a tenant's trail. */
    async follow(tenant: string): Promise<void> {
      const { found, now } = await documents.read(markOf(tenant), [KEY]);
      if (found[0]) return;
      const write = { key: KEY, seen: undefined, body: "{}", due: now + EVERY_MS };
      // Another process may write the same document first.
      await documents.write(markOf(tenant), [write], { version: newVersion() });
    },
  };
}

export type Retention = ReturnType<typeof createRetention>;
