// Pages of runs' logs, in stores that several processes share.

import type { Cursor, LogEntry, RunKey } from "../../../agent/core/stores.ts";
import { firstBatch } from "../log.ts";
import { assertSeen, type LogWindow } from "../seen.ts";
import type { Deadlines } from "./outages.ts";
import { limitReads } from "./read-limit.ts";

export interface LogState {
  /** The run's last seq. */
  readonly last: number;
  /** The epoch that may write. */
  readonly epoch: number;
  readonly state: "live" | "ended" | "gone";
  readonly held: LogWindow;
}

export interface EventPage extends LogState {
  /** The entries after the cursor, as many as a batch holds. */
  readonly entries: readonly LogEntry[];
}

/** All throw `unavailable`. Undefined: no such run. */
export interface Pages {
  /**
   * Where a run stands, and what comes after `after`, at one moment. Throws `events_expired` when the log is not what a
   * reader at `after` has seen.
   */
  read(run: RunKey, after: Cursor): Promise<EventPage | undefined>;
  /** Where it stands. */
  look(run: RunKey): Promise<LogState | undefined>;
}

/** Maximum number of entries or rows that a page is made of. */
const PAGE_ENTRIES = 64;
/** Bytes of entries or rows after which a page ends. */
export const PAGE_BYTES = 256 * 1024;

/** The part of a log that a store reads for one page. */
export interface StoredPage extends Omit<LogState, "held"> {
  /** The epochs that wrote something, oldest first, each followed by the seq of its first entry. */
  readonly epochs: readonly number[];
  /** They may begin before the position that was asked for. */
  readonly entries: readonly LogEntry[];
}

/**
 * `readStored` reads up to `count` entries or rows after `after`; undefined: no such run. `kept` is the number of a log's entries
 * that can be read.
 */
export function createPages(
  kept: number,
  readStored: (run: RunKey, after: number, count: number) => Promise<StoredPage | undefined>,
): Pages {
  return {
    async read(run, after) {
      const found = await page(run, after.seq, PAGE_ENTRIES);
      if (found) assertSeen(found.held, after);
      return found;
    },
    look: (run) => page(run, 0, 0),
  };

  async function page(run: RunKey, after: number, count: number): Promise<EventPage | undefined> {
    const stored = await readStored(run, after, count);
    if (!stored) return undefined;
    const { last, epoch, state, epochs, entries } = stored;
    const first = state === "gone" ? last + 1 : Math.max(1, last - kept + 1);
    const held = { first, last, epochOf: (seq: number) => epochAt(epochs, seq) };
    const later = state === "gone" ? [] : entries.filter(({ seq }) => seq > after);
    return { last, epoch, state, held, entries: firstBatch(later, 0) };
  }
}

function epochAt(epochs: readonly number[], seq: number): number | undefined {
  const at = epochs.findLastIndex((first, index) => index % 2 === 1 && first <= seq);
  return epochs[at - 1];
}

// Pages of logs for the viewers of this process. Only `AT_ONCE` pages are read from the store at once, for any number of viewers,
// so that runs wait behind few reads. Viewers that need the same page share one read. A viewer asks for the next page when it has
// taken the one before.
/** Pages on their way at once: about 1 MiB, unless single events are larger. */
const AT_ONCE = 4;

export function createReplays(
  pages: Pick<Pages, "read">,
  caller: Pick<Deadlines, "isInRun" | "ms">,
): Pick<Pages, "read"> {
  const wanted = new Map<string, Promise<EventPage | undefined>>();
  const limited = limitReads(AT_ONCE);

  return {
    read(run, after) {
      // A run does not wait behind viewers.
      if (caller.isInRun) return pages.read(run, after);
      const name = nameOf(run, after);
      const page = wanted.get(name) ?? limited(run.owner.tenant, caller.ms, () => pages.read(run, after));
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
