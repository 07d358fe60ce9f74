// Pages of runs' logs, in stores that several processes share.

import { hasCode } from "../../core/errors.ts";
import type { Cursor, LogEntry, RunKey } from "../../core/stores.ts";
import type { Held } from "../seen.ts";

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

// Pages of logs for the viewers of this process. However many replay at once, a bounded number of pages is on its way from
// the store, so that runs never wait behind more than these; viewers who want the same page at the same time share it.
// A viewer asks for the next page when it has taken the one before. When the store is away, all who wait get `unavailable` as
// soon as one of them does.
/** Pages on their way at once: about 1 MiB, unless single events are larger. */
const AT_ONCE = 4;

export function createReplays(
  pages: Pick<Pages, "read">,
  caller: { readonly isInRun: boolean },
): Pick<Pages, "read"> {
  const wanted = new Map<string, Promise<Page | undefined>>();
  const waiting: PromiseWithResolvers<void>[] = [];
  let reading = 0;

  return {
    read(run, after) {
      // A run does not wait behind viewers.
      if (caller.isInRun) return pages.read(run, after);
      const name = nameOf(run, after);
      const page = wanted.get(name) ?? inTurn(() => pages.read(run, after));
      if (!wanted.has(name)) {
        wanted.set(name, page);
        const forget = () => void wanted.delete(name);
        page.then(forget, forget);
      }
      return page;
    },
  };

  async function inTurn<T>(read: () => Promise<T>): Promise<T> {
    if (reading < AT_ONCE) reading++;
    else await queued();
    try {
      return await read();
    } catch (error) {
      // Reading each of them in its turn would take as long as this again, every time.
      if (hasCode(error, "unavailable")) for (const { reject } of waiting.splice(0)) reject(error);
      throw error;
    } finally {
      const next = waiting.shift();
      if (next) next.resolve();
      else reading--;
    }
  }

  function queued(): Promise<void> {
    const turn = Promise.withResolvers<void>();
    waiting.push(turn);
    return turn.promise;
  }
}

function nameOf({ owner, thread_id, run_id }: RunKey, { seq, epoch }: Cursor): string {
  return JSON.stringify([owner.tenant, owner.user, thread_id, run_id, seq, epoch]);
}
