// The ledger of sandboxes over a table that one process has for itself: what its words mean, the same in memory
// and in a file.

import type { Sandbox, SandboxKeep, SandboxLedger, SandboxRecord, SandboxState } from "../backends/ledger.ts";
import { randomId } from "../lib/random-id.ts";

/** How long a process may take to end a sandbox before others believe it dead, in ms. */
const ENDING_MS = 60_000;

/** A record, and when its time in its state is over: null when it has all the time there is. */
export interface SandboxEntry extends SandboxRecord {
  readonly due_at: number | null;
}

/**
 * Where entries lie. It grows with the sandboxes that have files somewhere, which weigh more than their entries.
 * Every method throws `unavailable` once the store is closed.
 */
export interface SandboxTable {
  /** Runs `work`, which must not wait, as one step. What it throws is thrown, and nothing is changed then. */
  change<T>(work: () => T): T;
  get(id: string): SandboxEntry | undefined;
  /** This and `delete` are parts of a change. */
  put(entry: SandboxEntry): void;
  delete(id: string): void;
  /** How many others run or are ending: of all tenants, and of this one's. */
  others(sandbox: Sandbox): { readonly total: number; readonly tenant: number };
  /** Those with a `due_at` of `time` or before, earliest first. */
  due(time: number, limit: number): SandboxEntry[];
  /** Those that run and were used at `time` or before, earliest first. */
  idle(time: number, limit: number): SandboxEntry[];
}

export function createLedger(table: SandboxTable, now: () => number): SandboxLedger {
  return {
    async enter(sandbox, caps) {
      return table.change(() => {
        const found = table.get(sandbox.id);
        if (found && isBeingEnded(found)) return "ending";
        if (found?.state !== "running") {
          const others = table.others(sandbox);
          if (others.tenant >= caps.tenant) return "tenant";
          if (others.total >= caps.total) return "total";
        }
        put(sandbox, "running", now());
        return "entered";
      });
    },

    async touch(ids) {
      table.change(() => {
        for (const id of ids) {
          const found = table.get(id);
          if (found?.state === "running") put(found, "running", now());
        }
      });
    },

    async adopt(sandbox, state) {
      table.change(() => {
        if (!table.get(sandbox.id)) put(sandbox, state, now());
      });
    },

    async get(id) {
      const found = table.get(id);
      return found && recordOf(found);
    },

    async due(limit) {
      return table.due(now(), limit).map(recordOf);
    },

    async idle(idleMs, limit) {
      return table.idle(now() - idleMs, limit).map(recordOf);
    },

    async begin(seen) {
      return table.change(() => {
        const found = asSeen(seen);
        if (!found || isBeingEnded(found)) return undefined;
        return recordOf(put(found, "ending", found.used_at));
      });
    },

    async settle(seen, state) {
      return table.change(() => {
        const found = asSeen(seen);
        if (!found) return false;
        if (state === "gone") table.delete(found.id);
        else put(found, state, found.used_at);
        return true;
      });
    },
  };

  function asSeen({ id, revision }: SandboxRecord): SandboxEntry | undefined {
    const found = table.get(id);
    return found?.revision === revision ? found : undefined;
  }

  /** By a process that may well be alive. */
  function isBeingEnded({ state, due_at }: SandboxEntry): boolean {
    return state === "ending" && due_at !== null && due_at > now();
  }

  function put({ id, owner, name, keep }: Sandbox, state: SandboxState, used_at: number): SandboxEntry {
    const due_at = state === "ending" ? now() + ENDING_MS : endOf(used_at, keep[KEPT[state]]);
    const entry = { id, owner, name, keep, state, used_at, revision: randomId(), due_at };
    table.put(entry);
    return entry;
  }
}

const KEPT = { running: "running", stopped: "container", removed: "files" } as const satisfies Record<
  Exclude<SandboxState, "ending">,
  keyof SandboxKeep
>;

const endOf = (used_at: number, kept: number | null) => (kept === null ? null : used_at + kept);

/** Without what is the store's own. */
function recordOf({ due_at: _, ...record }: SandboxEntry): SandboxRecord {
  return record;
}
