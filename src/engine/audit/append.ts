// Appends entries to their tenant's trail, and deletes old entries when the trail grows too long.

import { LRUCache } from "lru-cache";
import type { Documents } from "../../agent/core/documents.ts";
import { atMost } from "../../lib/lru.ts";
import { type AuditEntry, trailOf } from "./entry.ts";
import type { Retention } from "./retention.ts";

/** The entries of a tenant with their keys. Appending them a second time with the same version has no effect. */
export interface PreparedEntries {
  readonly tenant: string;
  readonly entries: readonly AuditEntry[];
  readonly keys: readonly string[];
  readonly version: string;
}

/** The maximum number of tenants that a process remembers as having a trail. */
const MAX_KNOWN = 10_000;
/**
 * The number of entries, as a fraction of the maximum, that a process appends before it deletes a tenant's
 * excess entries.
 */
const TRIMMED_AFTER = 0.1;

/** `most` is the maximum number of entries per tenant. */
export function createAppend(documents: Documents, { follow, trim }: Retention, most: number) {
  /** The number of entries that this process has appended since it last deleted excess entries, by tenant. */
  const appended = new LRUCache<string, number>(atMost(MAX_KNOWN));
  return async ({ tenant, entries, keys, version }: PreparedEntries): Promise<void> => {
    if (!appended.has(tenant)) await follow(tenant);
    const writes = entries.map((entry, n) => ({
      ...{ key: keys[n] ?? entry.id, seen: undefined, body: JSON.stringify(entry) },
    }));
    await documents.write(trailOf(tenant), writes, { version });
    const count = (appended.get(tenant) ?? 0) + entries.length;
    const isDue = count >= most * TRIMMED_AFTER;
    appended.set(tenant, isDue ? 0 : count);
    // If this fails, the next deletion catches up.
    if (isDue) await trim(tenant).catch(() => {});
  };
}
