// The newest events of the runs that are followed in this process. Each run has one subscription and one short log, for
// any number of followers. The store is authoritative, so entries that were missed or dropped are read from it.

import type { AppError } from "../../../agent/core/errors.ts";
import { storedEvent } from "../../../agent/core/stored-json.ts";
import type { Lease, LogEntry, RunKey } from "../../../agent/core/stores.ts";
import { isTerminal } from "../../../protocol/event.ts";
import { eventsExpired, storeClosed } from "../errors.ts";
import { Log } from "../log.ts";
import { entriesOfPending } from "../log-rows.ts";
import type { PendingEvent } from "../outcomes.ts";
import { OwnerMap } from "../owner-map.ts";
import type { LogState, Pages } from "./event-pages.ts";

/**
 * The maximum number of a run's entries to keep for viewers who follow closely, and the maximum number of their bytes.
 */
const TAIL = 64;
const TAIL_BYTES = 256 * 1024;
/** The number of milliseconds without messages after which a run is checked, because a message may have been lost. */
const SILENCE_MS = 5_000;

/** Delivers the entries of a run that other processes write. May miss some of them. */
export interface RunFeed {
  /**
   * Resolves when the events of `run` reach `listener`, which must be the only listener. Resolves at once while the
   * store is unreachable.
   */
  join(run: RunKey, listener: RunListener): Promise<void>;
  leave(run: RunKey): void;
}

export interface RunListener {
  /** Returns true if entries up to `last` are new. `epoch` is the epoch in which the last of them was written. */
  wants(last: number, epoch: number): boolean;
  onEntries(entries: readonly LogEntry[]): void;
  /**
   * Called when entries up to `last` are written. `epoch` is the epoch in which the last of them was written. `ends` is
   * true if that entry is the run's last one.
   */
  onNews(news: { readonly last: number; readonly epoch: number; readonly ends: boolean }): void;
  /** Called when entries may have been missed. */
  onGap(): void;
}

export interface LiveTail {
  readonly run: RunKey;
  /** The epoch that can write. */
  readonly epoch: number;
  readonly log: Log;
  /**
   * True if the run continues under another epoch or the store has lost entries. Readers must then read the stream
   * again.
   */
  isStale: boolean;
  readers: number;
  heardAt: number;
}

export class LiveTails {
  readonly #pages: Pick<Pages, "look">;
  readonly #source: RunFeed;
  readonly #feeds = new OwnerMap<LiveTail>();
  readonly #timer: NodeJS.Timeout;
  #isClosed = false;

  constructor(pages: Pick<Pages, "look">, source: RunFeed) {
    this.#pages = pages;
    this.#source = source;
    this.#timer = setInterval(() => this.#checkSilent(), SILENCE_MS).unref();
  }

  /**
   * Returns the log of an unfinished run from the given position. The log is updated until its readers leave. At first,
   * the log may be behind the run, and it catches up on its own. Its readers get an error when it becomes stale.
   */
  open(run: RunKey, state: Pick<LogState, "last" | "epoch">): LiveTail {
    const known = this.#feeds.get(run.owner, place(run));
    if (known && known.epoch !== state.epoch) this.#expire(known);
    const feed = known && !known.isStale ? known : this.#begin(run, state);
    feed.readers++;
    return feed;
  }

  /**
   * Delivers entries up to `last` that this process has just written. Readers in this process get them without waiting
   * for the message.
   */
  hear(lease: Lease, pending: readonly PendingEvent[], last: number): void {
    const feed = this.#feeds.get(lease.owner, place(lease));
    if (feed) this.#take(feed, entriesOfPending(pending, lease.epoch, last));
  }

  leave(feed: LiveTail): void {
    if (--feed.readers > 0 || this.#feeds.get(feed.run.owner, place(feed.run)) !== feed) return;
    this.#close(feed);
  }

  /** Ends waiting readers of the run with `why`. Later readers read from the store. */
  fail(run: RunKey, why: AppError): void {
    const feed = this.#feeds.get(run.owner, place(run));
    if (!feed) return;
    this.#close(feed);
    feed.log.close(why);
  }

  /** Closes all logs. Waiting readers get `unavailable`. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    for (const { log } of this.#feeds.values()) log.close(storeClosed());
  }

  #close({ run }: LiveTail): void {
    this.#feeds.delete(run.owner, place(run));
    this.#source.leave(run);
  }

  #expire(feed: LiveTail): void {
    if (feed.isStale) return;
    feed.isStale = true;
    this.#close(feed);
    feed.log.close(eventsExpired(feed.log.last));
  }

  #begin(run: RunKey, { last, epoch }: Pick<LogState, "last" | "epoch">): LiveTail {
    const log = new Log(TAIL, last, TAIL_BYTES);
    const listener: RunListener = {
      wants: (to, by) => to > log.last || by > epoch,
      onEntries: (entries) => this.#take(feed, entries),
      onNews: (news) => this.#advance(feed, news),
      onGap: () => void this.#check(feed),
    };
    const heardAt = performance.now();
    const feed: LiveTail = { run, epoch, log, isStale: false, readers: 0, heardAt };
    // A check finds entries that were written before the channel was joined. Later entries arrive on the channel.
    void this.#source.join(run, listener).then(() => this.#check(feed));
    if (this.#isClosed) log.close(storeClosed());
    this.#feeds.set(run.owner, place(run), feed);
    return feed;
  }

  #take(feed: LiveTail, entries: readonly LogEntry[]): void {
    const { log } = feed;
    feed.heardAt = performance.now();
    for (const entry of entries) {
      // Earlier entries may differ from the known ones.
      if (entry.epoch > feed.epoch) {
        this.#expire(feed);
        return;
      }
      if (entry.seq <= log.last || entry.epoch < feed.epoch) continue;
      log.advance(entry.seq - 1);
      log.push(entry);
      if (isEnd(entry)) log.end();
    }
    log.ringSoon();
  }

  #advance(feed: LiveTail, { last, epoch, ends }: Parameters<RunListener["onNews"]>[0]): void {
    const { log } = feed;
    feed.heardAt = performance.now();
    if (epoch > feed.epoch) this.#expire(feed);
    if (epoch !== feed.epoch) return;
    log.advance(last);
    if (ends) log.end();
    else log.ringSoon();
  }

  /** Checks the stored log for missed entries. If a run cannot be checked now, it is checked later. */
  async #check(feed: LiveTail): Promise<void> {
    const { run, log } = feed;
    feed.heardAt = performance.now();
    const before = log.last;
    try {
      const state = await this.#pages.look(run);
      // The store may have lost confirmed entries that readers have seen.
      if (!state || state.last < before || state.epoch !== feed.epoch) return this.#expire(feed);
      log.advance(state.last);
      if (state.state === "live") log.ringSoon();
      else log.end();
    } catch {
      // A later silence check, or the restored connection, will detect the gap.
    }
  }

  #checkSilent(): void {
    const since = performance.now() - SILENCE_MS;
    for (const feed of this.#feeds.values()) if (feed.heardAt <= since) void this.#check(feed);
  }
}

const place = ({ thread_id, run_id }: RunKey) => `${thread_id}/${run_id}`;

/** Returns true if this is the run's own last event rather than that of a subagent's thread. */
function isEnd({ event, json }: LogEntry): boolean {
  if (!isTerminal(event)) return false;
  const { path } = storedEvent({ json });
  return !path?.length;
}
