// Pages of runs' logs, in stores that several processes share.

import type { Cursor, LogEntry, RunKey } from "../../core/stores.ts";
import type { Held } from "../seen.ts";
import type { Deadlines } from "./outages.ts";
import { createTurns } from "./turns.ts";

export interface LogState {
  /** The run's last seq. */
  readonly last: number;
  /** The one that may write. */
  readonly epoch: number;
  readonly state: "live" | "ended" | "gone";
  readonly held: Held;
}

export interface Page extends LogState {
  /** The entries after the cursor, as many as a batch holds. */
  readonly entries: readonly LogEntry[];
}

/** All throw `unavailable`. Undefined: no such run. */
export interface Pages {
  /**
   * Where a run stands, and what comes after `after`, at one moment. Throws `events_expired` when the log is not what a
   * reader at `after` has seen.
   */
  read(run: RunKey, after: Cursor): Promise<Page | undefined>;
  /** Where it stands. */
  look(run: RunKey): Promise<LogState | undefined>;
}

// Pages of logs for the viewers of this process. Only a bounded number of pages is on its way from the store at once, for any
// number of viewers, so that runs never wait behind more than these; viewers that want the same page at the same time share it.
// A viewer asks for the next page when it has taken the one before.
/** Pages on their way at once: about 1 MiB, unless single events are larger. */
const AT_ONCE = 4;

export function createReplays(
  pages: Pick<Pages, "read">,
  caller: Pick<Deadlines, "isInRun" | "ms">,
): Pick<Pages, "read"> {
  const wanted = new Map<string, Promise<Page | undefined>>();
  const inTurn = createTurns(AT_ONCE);

  return {
    read(run, after) {
      // A run does not wait behind viewers.
      if (caller.isInRun) return pages.read(run, after);
      const name = nameOf(run, after);
      const page = wanted.get(name) ?? inTurn(run.owner.tenant, caller.ms, () => pages.read(run, after));
      if (!wanted.has(name)) {
        wanted.set(name, page);
        const forget = () => void wanted.delete(name);
        page.then(forget, forget);
      }
      return page;
    },
  };
}

function nameOf({ owner, thread_id, run_id }: RunKey, { seq, epoch }: Cursor): string {
  return JSON.stringify([owner.tenant, owner.user, thread_id, run_id, seq, epoch]);
}
