// The entries that wait to be written, by tenant. Each tenant has its own places; entries beyond them are dropped and
// counted.

import type { AuditEntry } from "./entry.ts";

/** The maximum number of waiting entries, per tenant and in total. */
const PER_TENANT = 2_000;
const IN_ALL = 20_000;

interface TenantQueue {
  readonly entries: AuditEntry[];
  /** The number of entries dropped since the last batch was taken, because the queue was full. */
  dropped: number;
}

/** The next entries of a tenant. `dropped` is the number of entries missing after them. */
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
    /** Returns false if the queue is full. The entry is then counted as dropped. */
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
    /**
     * Takes the next entries of the tenant that has waited longest. If entries remain, the tenant moves to the end of
     * the line.
     */
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
