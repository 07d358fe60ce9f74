// Pages of runs' logs, for stores that several processes share.

import type { Cursor, LogEntry, RunKey } from "../../../agent/core/stores.ts";
import { firstBatch } from "../log.ts";
import { assertSeen, type LogWindow } from "../seen.ts";
import type { Deadlines } from "./outages.ts";
import { limitReads } from "./read-limit.ts";

export interface LogState {
  /** The run's last seq. */
  readonly last: number;
  /** The epoch that can write. */
  readonly epoch: number;
  readonly state: "live" | "ended" | "gone";
  readonly held: LogWindow;
}

export interface EventPage extends LogState {
  /** The entries after the cursor, up to one batch. */
  readonly entries: readonly LogEntry[];
}

/** All methods throw `unavailable`, and return undefined if the run does not exist. */
export interface Pages {
  /**
   * Returns the state of a run and the entries after `after`, from the same moment. Throws `events_expired` if the log
   * differs from what a reader at `after` has seen.
   */
  read(run: RunKey, after: Cursor): Promise<EventPage | undefined>;
  /** Returns the state of a run's log. */
  look(run: RunKey): Promise<LogState | undefined>;
}

/** The maximum number of entries or rows in a page. */
const PAGE_ENTRIES = 64;
/** The number of bytes in entries or rows after which a page ends. */
export const PAGE_BYTES = 256 * 1024;

/** The part of a log that a store reads for one page. */
export interface StoredPage extends Omit<LogState, "held"> {
  /** The epochs that wrote entries, oldest first, each with the seq of its first entry. */
  readonly epochs: readonly number[];
  /** The entries. They may begin before the requested position. */
  readonly entries: readonly LogEntry[];
}

/**
 * `readStored` reads at most `count` entries or rows after `after`, or returns undefined if the run does not exist.
 * `kept` is the number of readable entries per log.
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

// Pages of logs for the viewers of this process. At most `AT_ONCE` pages are read from the store at a time, for any
// number of viewers, so runs wait for only a few reads. Viewers that need the same page share one read. A viewer
// requests the next page after it has consumed the previous one.
/** The maximum number of concurrent page reads, which use about 1 MiB unless single events are larger. */
const AT_ONCE = 4;

export function createReplays(
  pages: Pick<Pages, "read">,
  caller: Pick<Deadlines, "isInRun" | "ms">,
): Pick<Pages, "read"> {
  const wanted = new Map<string, Promise<EventPage | undefined>>();
  const limited = limitReads(AT_ONCE);

  return {
    read(run, after) {
      // A run does not wait for viewers.
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
