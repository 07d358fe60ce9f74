// Decides which due documents are picked next. Tenants take turns, and a tenant's turn begins when its first document
// is due.

import {
  type Collection,
  type Documents,
  isOwned,
  MAX_PICKED,
  type OwnedCollection,
} from "../../../agent/core/documents.ts";
import { inTurn, isDueAt } from "../document-rules.ts";
import type { MemoryCollections } from "./collections.ts";
import type { DocumentEntry } from "./records.ts";

export interface MemorySchedule extends Pick<Documents, "pick"> {
  /** Records that a document of the collection is due at `time`. */
  add(collection: Collection, time: number): void;
}

type IsDue = (time: number) => boolean;

export function memorySchedule(
  { itemsOf, ofTenant }: MemoryCollections,
  { now: clock }: { readonly now: () => number },
): MemorySchedule {
  /** Time of the next turn, by kind and tenant. */
  const kinds = new Map<string, Map<string, number>>();

  return {
    add(collection, time) {
      if (!isOwned(collection)) return;
      const { kind, tenant } = collection;
      const known = kinds.get(kind)?.get(tenant) ?? Number.POSITIVE_INFINITY;
      set(kind, tenant, Math.min(known, Math.max(time, clock())));
    },

    async pick(kind, { limit, holdMs, aheadMs = Number.POSITIVE_INFINITY }) {
      const now = clock();
      const isDue = (time: number) => isDueAt(now, aheadMs, time);
      const most = Math.min(limit, MAX_PICKED);
      const tenants = waiting(kind, isDue).slice(0, most);
      const due = tenants.map((tenant) =>
        ofTenant(kind, tenant)
          .flatMap((collection) => dueIn(collection, isDue).map((entry) => ({ collection, entry })))
          .sort((a, b) => byDue(a.entry, b.entry))
          .slice(0, most),
      );
      const picked = inTurn(due, most);
      for (const { collection, entry } of picked)
        itemsOf(collection)?.set(entry.key, { ...entry, due: now + holdMs });
      for (const tenant of tenants) set(kind, tenant, Math.max(nextDue(kind, tenant), now));
      return picked.map(({ collection, entry: { key, version } }) => ({ collection, key, version }));
    },
  };

  function set(kind: string, tenant: string, time: number): void {
    const tenants = kinds.get(kind) ?? new Map<string, number>();
    if (time < Number.POSITIVE_INFINITY) kinds.set(kind, tenants.set(tenant, time));
    else tenants.delete(tenant);
  }

  /** Returns the waiting tenants, longest-waiting first. */
  function waiting(kind: string, isDue: IsDue): string[] {
    return [...(kinds.get(kind) ?? [])]
      .filter(([, time]) => isDue(time))
      .sort(([, a], [, b]) => a - b)
      .map(([tenant]) => tenant);
  }

  function dueIn(collection: OwnedCollection, isDue: IsDue): DocumentEntry[] {
    return [...(itemsOf(collection)?.values() ?? [])].filter(({ due }) => isDue(due));
  }

  /** Returns Infinity if nothing will be due. */
  function nextDue(kind: string, tenant: string): number {
    let next = Number.POSITIVE_INFINITY;
    for (const collection of ofTenant(kind, tenant))
      for (const { due } of itemsOf(collection)?.values() ?? []) next = Math.min(next, due);
    return next;
  }
}

/** Earliest first. */
export const byDue = (a: DocumentEntry, b: DocumentEntry) => a.due - b.due || (a.key < b.key ? -1 : 1);
