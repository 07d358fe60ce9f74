// The ledger of sandboxes in memory. What still runs when the process ends is found again on the engine.

import type { SandboxLedger } from "../../backends/ledger.ts";
import { jsonCopy } from "../../lib/json.ts";
import { createLedger, type SandboxEntry } from "../sandbox-ledger.ts";
import type { Book } from "./book.ts";

export function memorySandboxes(book: Book): SandboxLedger {
  const entries = new Map<string, SandboxEntry>();

  return createLedger(
    {
      change(work) {
        book.assertOpen();
        return work();
      },
      get(id) {
        book.assertOpen();
        const entry = entries.get(id);
        return entry && jsonCopy(entry);
      },
      put: (entry) => void entries.set(entry.id, jsonCopy(entry)),
      delete: (id) => void entries.delete(id),
      others({ id, owner }) {
        const others = all((entry) => isTaken(entry) && entry.id !== id);
        const tenants = others.filter((entry) => entry.owner.tenant === owner.tenant);
        return { total: others.length, tenant: tenants.length };
      },
      due: (time, limit) => earliest(({ due_at }) => due_at, time, limit),
      idle: (time, limit) =>
        earliest(({ state, used_at }) => (state === "running" ? used_at : null), time, limit),
    },
    book.limits.now,
  );

  function all(fits: (entry: SandboxEntry) => boolean): SandboxEntry[] {
    book.assertOpen();
    return [...entries.values()].filter(fits);
  }

  /** Those whose time by `timeOf` has come. */
  function earliest(
    timeOf: (entry: SandboxEntry) => number | null,
    time: number,
    limit: number,
  ): SandboxEntry[] {
    const key = (entry: SandboxEntry) => timeOf(entry) ?? Number.POSITIVE_INFINITY;
    return all((entry) => key(entry) <= time)
      .sort((a, b) => key(a) - key(b) || (a.id < b.id ? -1 : 1))
      .slice(0, limit)
      .map(jsonCopy);
  }
}

const isTaken = ({ state }: SandboxEntry) => state === "running" || state === "ending";
