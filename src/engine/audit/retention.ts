// Deletes the entries of trails that are too old or too many. Any process does it, for all tenants in turn.

import { type ClaimedDocument, finish } from "../../agent/core/document-claims.ts";
import { type Documents, newVersion, type OwnedCollection, retain } from "../../agent/core/documents.ts";
import type { Logger } from "../../lib/logger.ts";
import { createDueWorker } from "../due-worker.ts";
import { trailOf } from "./entry.ts";

export interface KeptEntries {
  /** How long entries are kept, in ms. May be infinite. */
  readonly ms: number;
  /**
   * Maximum number of entries of a tenant, more than a few batches: of entries written in the same millisecond as the oldest
   * that stays, any may be deleted.
   */
  readonly count: number;
}

const KIND = "audit_retention";
const KEY = "retention";
const HOUR = 3_600_000;
/** Time between two deletions of a tenant with entries, and of one without, in ms. */
const EVERY_MS = HOUR;
const EVERY_EMPTY_MS = 24 * HOUR;
const POLL_MS = 60_000;
const LEASE_MS = 120_000;
const AT_ONCE = 2;

const markOf = (tenant: string): OwnedCollection => ({ kind: KIND, tenant });

/** The caller opens and closes it. */
export function createRetention(documents: Documents, kept: KeptEntries, logger: Logger) {
  const work = async (claimed: ClaimedDocument, signal: AbortSignal) => {
    const { collection, body, now } = claimed;
    await retain(documents, trailOf(collection.tenant), kept, signal);
    const { items } = await documents.page(trailOf(collection.tenant), { order: "key", limit: 1 });
    // The document stays: another process may know that it exists, and append to the trail now.
    await finish(documents, claimed, { body, due: now + (items.length > 0 ? EVERY_MS : EVERY_EMPTY_MS) });
  };
  const due = { kind: KIND, work, leaseMs: LEASE_MS, everyMs: POLL_MS, atOnce: AT_ONCE };
  const worker = createDueWorker(documents, due, logger);
  return {
    open: () => worker.open(),
    close: () => worker.close(),
    /** Deletes what is beyond the maximum now. */
    trim: (tenant: string) => retain(documents, trailOf(tenant), { count: kept.count }),
    /** To be called before a process first appends to a tenant's trail. */
    async follow(tenant: string): Promise<void> {
      const { found, now } = await documents.read(markOf(tenant), [KEY]);
      if (found[0]) return;
      const write = { key: KEY, seen: undefined, body: "{}", due: now + EVERY_MS };
      // Another process may write the same one first.
      await documents.write(markOf(tenant), [write], { version: newVersion() });
    },
  };
}

export type Retention = ReturnType<typeof createRetention>;
