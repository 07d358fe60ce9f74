// Appends entries to the trail of their tenant, and sees to it that the trail is cut in time.

import { LRUCache } from "lru-cache";
import type { Documents } from "../../agent/core/documents.ts";
import { type AuditEntry, trailOf } from "./entry.ts";
import type { Retention } from "./retention.ts";

/** Entries of a tenant with their keys. Appending them again, with the same version, has no effect. */
export interface PreparedEntries {
  readonly tenant: string;
  readonly entries: readonly AuditEntry[];
  readonly keys: readonly string[];
  readonly version: string;
}

/** Tenants that a process knows to have a trail. */
const MAX_KNOWN = 10_000;
/** A process deletes the entries of a tenant beyond the maximum after it has appended this part of it. */
const TRIMMED_AFTER = 0.1;

/** `most`: the maximum number of entries of a tenant. */
export function createAppend(documents: Documents, { follow, trim }: Retention, most: number) {
  /** Entries that this process has appended since it last deleted those beyond the maximum, by tenant. */
  const appended = new LRUCache<string, number>({ max: MAX_KNOWN });
  return async ({ tenant, entries, keys, version }: PreparedEntries): Promise<void> => {
    if (!appended.has(tenant)) await follow(tenant);
    const writes = entries.map((entry, n) => ({
      ...{ key: keys[n] ?? entry.id, seen: undefined, body: JSON.stringify(entry) },
    }));
    await documents.write(trailOf(tenant), writes, { version });
    const count = (appended.get(tenant) ?? 0) + entries.length;
    const isDue = count >= most * TRIMMED_AFTER;
    appended.set(tenant, isDue ? 0 : count);
    // If it fails, the next one does it.
    if (isDue) await trim(tenant).catch(() => {});
  };
}
