// Entries that wait to be written, by tenant. No tenant takes the places of the others; what exceeds them is counted.

import type { AuditEntry } from "./entry.ts";

/** Maximum number of entries that wait, of one tenant and of all. */
const PER_TENANT = 2_000;
const IN_ALL = 20_000;

interface TenantQueue {
  readonly entries: AuditEntry[];
  /** Entries that found no place since the last batch was taken. */
  dropped: number;
}

/** The next entries of a tenant. `dropped`: the number of entries that are missing after them. */
export interface Batch {
  readonly tenant: string;
  readonly entries: readonly AuditEntry[];
  readonly dropped: number;
}

export function createQueue() {
  const waiting = new Map<string, TenantQueue>();
  let size = 0;
  const of = (tenant: string): TenantQueue => {
    const known = waiting.get(tenant);
    if (known) return known;
    const made = { entries: [], dropped: 0 };
    waiting.set(tenant, made);
    return made;
  };
  return {
    /** False if there is no place. The entry is counted then. */
    add(entry: AuditEntry): boolean {
      const own = of(entry.tenant);
      const isFull = size >= IN_ALL || own.entries.length >= PER_TENANT;
      if (isFull) own.dropped += 1;
      else {
        own.entries.push(entry);
        size += 1;
      }
      return !isFull;
    },
    /** Takes the next entries of the tenant that waits for longest. Those that stay wait behind the other tenants. */
    take(most: number): Batch | undefined {
      const [next] = waiting;
      if (!next) return undefined;
      const [tenant, own] = next;
      const entries = own.entries.splice(0, most);
      size -= entries.length;
      waiting.delete(tenant);
      if (own.entries.length > 0) waiting.set(tenant, own);
      const dropped = own.entries.length > 0 ? 0 : own.dropped;
      return { tenant, entries, dropped };
    },
    get size() {
      return size;
    },
    get isEmpty() {
      return waiting.size === 0;
    },
  };
}

export type Queue = ReturnType<typeof createQueue>;
