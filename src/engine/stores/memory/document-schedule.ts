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
import { type DueTime, DueTimes } from "./due-times.ts";
import type { DocumentEntry } from "./records.ts";

export interface MemorySchedule extends Pick<Documents, "pick"> {
  /**
   * Records that a document of the collection is due at `time`, or never if `time` is null. Call this after the
   * document is written.
   */
  add(collection: Collection, key: string, time: number | null): void;
}

/** A tenant with documents that are or will be due. */
interface Turn {
  /** The time at which the turn begins. */
  at: number;
  /** Keeps the order in which turns were set, for turns that begin in the same millisecond. */
  order: number;
  readonly times: DueTimes;
}

interface Due {
  readonly collection: OwnedCollection;
  readonly entry: DocumentEntry;
  /** True if the document's time was removed from the waiting times. */
  readonly isTaken: boolean;
}

export function memorySchedule(
  { itemsOf }: Pick<MemoryCollections, "itemsOf">,
  { now: clock }: { readonly now: () => number },
): MemorySchedule {
  /** The turns by kind and tenant. */
  const kinds = new Map<string, Map<string, Turn>>();
  let orders = 0;
  const entryAt = ({ collection, key, due }: DueTime) => {
    const entry = itemsOf(collection)?.get(key);
    return entry?.due === due ? entry : undefined;
  };

  return {
    add(collection, key, time) {
      if (!isOwned(collection) || time === null) return;
      const { kind, tenant } = collection;
      const tenants = kinds.get(kind) ?? new Map<string, Turn>();
      kinds.set(kind, tenants);
      const turn = tenants.get(tenant) ?? newTurn();
      tenants.set(tenant, turn);
      turn.times.add({ due: time, key, collection });
      const at = Math.max(time, clock());
      if (at < turn.at) begin(turn, at);
    },

    async pick(kind, { limit, holdMs, aheadMs = Number.POSITIVE_INFINITY }) {
      const now = clock();
      const most = Math.min(limit, MAX_PICKED);
      const turns = waiting(kind, (time) => isDueAt(now, aheadMs, time)).slice(0, most);
      const due = turns.map(([, { times }]) => takeDue(times, entryAt, { now, aheadMs, most }));
      const picked = inTurn(due, most);
      const left = new Set(due.flat());
      for (const each of picked) {
        left.delete(each);
        const held = { ...each.entry, due: now + holdMs };
        itemsOf(each.collection)?.set(held.key, held);
        addTime(kind, each.collection, held);
      }
      for (const { collection, entry, isTaken } of left) if (isTaken) addTime(kind, collection, entry);
      for (const [tenant, turn] of turns) {
        const next = turn.times.first();
        if (next) begin(turn, Math.max(next.due, now));
        else kinds.get(kind)?.delete(tenant);
      }
      return picked.map(({ collection, entry: { key, version } }) => ({ collection, key, version }));
    },
  };

  function newTurn(): Turn {
    return { at: Number.POSITIVE_INFINITY, order: 0, times: new DueTimes(entryAt) };
  }

  function begin(turn: Turn, at: number): void {
    turn.at = at;
    turn.order = orders++;
  }

  function addTime(kind: string, collection: OwnedCollection, { key, due }: DocumentEntry): void {
    kinds.get(kind)?.get(collection.tenant)?.times.add({ due, key, collection });
  }

  /** Returns the waiting tenants, starting with the tenant that has waited longest. */
  function waiting(kind: string, isDue: (time: number) => boolean): [string, Turn][] {
    return [...(kinds.get(kind) ?? [])]
      .filter(([, { at }]) => isDue(at))
      .sort(([, a], [, b]) => a.at - b.at || a.order - b.order);
  }
}

/** Takes at most `most` due documents, each only once. */
function takeDue(
  times: DueTimes,
  entryAt: (time: DueTime) => DocumentEntry | undefined,
  { now, aheadMs, most }: { readonly now: number; readonly aheadMs: number; readonly most: number },
): Due[] {
  const found = new Map<DocumentEntry, Due>();
  const note = (time: DueTime, isTaken: boolean) => {
    const entry = entryAt(time);
    if (entry) found.set(entry, { collection: time.collection, entry, isTaken });
  };
  for (let time = times.first(); time && time.due <= now && found.size < most; time = times.first()) {
    note(time, true);
    times.drop();
  }
  // These documents were written before the clock was set back.
  const ahead = Number.isFinite(aheadMs) ? times.after(now + aheadMs) : [];
  for (const time of ahead.toSorted((a, b) => a.due - b.due)) if (found.size < most) note(time, false);
  return [...found.values()];
}

/** Sorts the earliest document first. */
export const byDue = (a: DocumentEntry, b: DocumentEntry) => a.due - b.due || (a.key < b.key ? -1 : 1);
