// Batches the appends to the file: events that several runs emit at about the same time are written in one transaction.
//
// Progress events are also written in the same tick of the event loop, unless the last write was slow. In that case,
// they wait for MAX_WAIT_MS or MAX_WAITING events. Every other event is written together with all waiting events of its
// run. It is on disk before its append resolves and readers get it. Readers get the run's later events after it. If
// many events wait, each tick writes the events of only some runs.

import type { Lease, RunKey } from "../../../agent/core/stores.ts";
import { atMostEvery } from "../../../lib/at-most-every.ts";
import type { Logger } from "../../../lib/logger.ts";
import { isProgress, type StreamEvent } from "../../../protocol/event.ts";
import { leaseLost } from "../errors.ts";
import { entriesOfPending } from "../log-rows.ts";
import { changesThread, hasEnd, type PendingEvent, pendingEvent } from "../outcomes.ts";
import { ownerText, type ThreadKey, threadText } from "../row-keys.ts";
import type { EventCommitter } from "./commit-events.ts";
import type { Database } from "./database.ts";
import type { Flights } from "./flights.ts";
import type { LiveRun, LiveRuns } from "./live-runs.ts";
import { mayPass } from "./node-sqlite.ts";
import { PAUSE_MS } from "./patience.ts";
import type { Tail } from "./tail.ts";

const MAX_WAIT_MS = 5;
/** Limits the writing of progress events to a fifth of the time. */
const WAIT_PER_WORK = 4;
const MAX_WAITING = 64;
const SHORTEST_TIMER_MS = 1;
/** The number of milliseconds between two checks of whether the log has restarted. */
const QUIET_MS = 1;
/** The number of characters to write per tick of the event loop. The run that exceeds the limit ends the tick. */
const TURN_CHARS = 256 * 1024;
/** The number of runs whose kept events move to their logs in one tick. */
const MOVES = 16;
/** The number of milliseconds between two log lines about a move that failed. */
const TELL_MS = 10_000;

/** The waiting events of one run. */
interface QueuedEvents {
  readonly run: LiveRun;
  readonly epoch: number;
  readonly pending: PendingEvent[];
  readonly written: PromiseWithResolvers<void>;
  chars: number;
  ends: boolean;
  isDurable: boolean;
  /** After the file has refused the events: the time at which they fail, and the reason for the refusal. */
  until: number | undefined;
  refusal: unknown;
}

/** Resolves when readers have received the committed events, or with the disk's error. */
type Landing = Promise<{ readonly error: unknown } | undefined>;

interface Parts {
  readonly database: Database;
  readonly live: LiveRuns;
  readonly commit: EventCommitter;
  readonly tail: Tail;
  readonly flights: Flights;
}

export class Writer {
  readonly #database: Database;
  readonly #live: LiveRuns;
  readonly #commit: EventCommitter;
  readonly #tail: Tail;
  readonly #flights: Flights;
  readonly #waiting = new Map<LiveRun, QueuedEvents>();
  /** The last committed events of each run that readers do not have yet. */
  readonly #landings = new Map<LiveRun, Landing>();
  #count = 0;
  #timer: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;
  /** The time at which progress can be written again. */
  #restsUntil = 0;
  readonly #patienceMs: number;
  readonly #tellOfMove: (line: object) => void;
  /** The end of the pause after the file has refused a write. */
  #pausesUntil = 0;
  #isClosed = false;

  /** If the file temporarily refuses events, they wait for `patienceMs`. */
  constructor({ database, live, commit, tail, flights }: Parts, patienceMs: number, logger: Logger) {
    this.#patienceMs = patienceMs;
    this.#tellOfMove = atMostEvery(TELL_MS, (line) =>
      logger.warn(line, "events of a run could not be moved to its log; will retry"),
    );
    this.#database = database;
    this.#live = live;
    this.#commit = commit;
    this.#tail = tail;
    this.#flights = flights;
  }

  /** Resolves when `events` are written. Before it writes anything, throws `lease_lost` or an error about the events. */
  append(lease: Lease, events: readonly StreamEvent[]): Promise<void> {
    this.#database.assertOpen();
    const run = this.#live.leased(lease);
    const waiting = this.#waiting.get(run) ?? newWaiting(run, lease.epoch);
    if (waiting.ends) throw leaseLost(lease);
    const pending = events.map(pendingEvent);
    waiting.ends = hasEnd(pending);
    const canWait = events.every(({ event }) => isProgress(event));
    waiting.isDurable ||= !canWait;
    waiting.pending.push(...pending);
    for (const { json } of pending) waiting.chars += json.length;
    this.#waiting.set(run, waiting);
    this.#count += pending.length;
    this.#schedule(canWait);
    return waiting.written.promise;
  }

  /** Writes waiting events now. Never throws; `append` does. */
  flush(): void {
    this.#writeUpTo(Number.POSITIVE_INFINITY);
  }

  /** Like `flush`, for one thread. Call this before changing who can write to the thread. Throws the file's error. */
  flushThread([owner, id]: ThreadKey): void {
    const isOfThread = ({ run: { key } }: QueuedEvents) =>
      key.thread_id === id && ownerText(key.owner) === owner;
    const all = [...this.#waiting.values()].filter(isOfThread);
    if (all.length > 0) this.#writeOut(all);
    const refused = all.find(({ run }) => this.#waiting.has(run))?.refusal;
    if (refused) throw refused;
  }

  /** Writes waiting events a last time without waiting for the file. Resolves when readers have them. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.flush();
    await Promise.all(this.#landings.values());
  }

  /** Moves events that were kept outside a run's log into that log. Throws `unavailable`. */
  moveToLog(key: RunKey): void {
    const run = this.#live.find(key);
    const kept = run && this.#tail.of(run);
    if (!kept) return;
    this.#database.write((afterCommit) =>
      this.#commit(run, kept.epoch, [], { afterCommit, afterFlush: () => {} }),
    );
  }

  #writeUpTo(chars: number): void {
    this.#unschedule();
    const all: QueuedEvents[] = [];
    let left = chars;
    for (const waiting of this.#waiting.values()) {
      if (left <= 0) break;
      left -= waiting.chars;
      all.push(waiting);
    }
    this.#writeOut(all);
    if (this.#waiting.size > 0) this.#writeLater();
  }

  #writeOut(all: readonly QueuedEvents[]): void {
    for (const { run, pending } of all) {
      this.#waiting.delete(run);
      this.#count -= pending.length;
    }
    const begun = performance.now();
    try {
      this.#write(all);
    } catch {
      // Writes each run separately, so a failure affects only one run.
      for (const waiting of all) this.#writeAlone(waiting);
    }
    this.#moveOld();
    const ended = performance.now();
    this.#restsUntil = ended + Math.min(MAX_WAIT_MS, WAIT_PER_WORK * (ended - begun));
  }

  #schedule(mayWait: boolean): void {
    const wait = this.#restsUntil - performance.now();
    if (this.#pauseMs > 0) this.#writeLater();
    else if (this.#count >= MAX_WAITING) this.#writeUpTo(TURN_CHARS);
    else if (!mayWait || wait < SHORTEST_TIMER_MS) this.#immediate ??= setImmediate(this.#writeSoon);
    else this.#timer ??= setTimeout(this.#writeSoon, wait);
  }

  /** The number of milliseconds to pause because the file has just refused a write or its log is about to restart. */
  get #pauseMs(): number {
    if (performance.now() < this.#pausesUntil) return PAUSE_MS;
    return this.#database.wantsQuiet ? QUIET_MS : 0;
  }

  #writeLater(): void {
    const pause = this.#pauseMs;
    if (pause > 0) this.#timer ??= setTimeout(this.#writeSoon, pause);
    else this.#immediate ??= setImmediate(this.#writeSoon);
  }

  readonly #writeSoon = (): void => {
    this.#unschedule();
    if (this.#pauseMs > 0) this.#writeLater();
    else this.#writeUpTo(TURN_CHARS);
  };

  #unschedule(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#immediate);
    this.#timer = undefined;
    this.#immediate = undefined;
  }

  #writeAlone(waiting: QueuedEvents): void {
    try {
      this.#write([waiting]);
    } catch (error) {
      const now = performance.now();
      waiting.until ??= now + this.#patienceMs;
      waiting.refusal = error;
      if (this.#isClosed || now >= waiting.until || !mayPass(error)) waiting.written.reject(error);
      else this.#putBack(waiting);
    }
  }

  /** Queues the events again, together with the run's later events. */
  #putBack(waiting: QueuedEvents): void {
    this.#waiting.set(waiting.run, waiting);
    this.#count += waiting.pending.length;
    this.#pausesUntil = performance.now() + PAUSE_MS;
    this.#writeLater();
  }

  #write(all: readonly QueuedEvents[]): void {
    if (all.length === 0) return;
    const effects = new Map<QueuedEvents, () => void>();
    this.#database.write((afterCommit) => {
      const short: QueuedEvents[] = [];
      for (const each of all) {
        const { run, epoch, pending } = each;
        if (this.#isForTail(each)) short.push(each);
        else
          this.#commit(run, epoch, pending, { afterCommit, afterFlush: (show) => effects.set(each, show) });
      }
      if (short.length > 0) this.#tail.keep(short, afterCommit);
    });
    for (const each of all) this.#land(each, effects.get(each) ?? (() => showProgress(each)));
  }

  #isForTail(waiting: QueuedEvents): boolean {
    return !waiting.isDurable && !waiting.pending.some(changesThread) && this.#tail.hasRoomFor(waiting);
  }

  /**
   * Moves events that the tail has kept for too long to the logs of their runs. If a run's events cannot be moved,
   * retries later. Never throws.
   */
  #moveOld(): void {
    for (const { run } of this.#tail.old().slice(0, MOVES)) {
      try {
        this.moveToLog(run.key);
      } catch (err) {
        const { thread_id, run_id } = run.key;
        this.#tellOfMove({ err, thread_id, run_id });
      }
    }
  }

  /**
   * Shows committed events and resolves `written`, immediately if the events need not be on disk. Keeps the run's
   * order.
   */
  #land(waiting: QueuedEvents, show: () => void): void {
    const { run, written, isDurable } = waiting;
    const before = this.#landings.get(run);
    if (!isDurable && !before) {
      show();
      written.resolve();
      return;
    }
    const flushed = isDurable ? this.#flushed() : undefined;
    const landing: Landing = Promise.all([before, flushed]).then(([...failures]) => {
      if (this.#landings.get(run) === landing) this.#landings.delete(run);
      const failure = failures.find((each) => each !== undefined);
      if (failure) written.reject(failure.error);
      else {
        show();
        written.resolve();
      }
      return failure;
    });
    this.#landings.set(run, landing);
    // Durable writes complete in the order in which their flushes were requested.
    if (isDurable) this.#flights.add(threadText([ownerText(run.key.owner), run.key.thread_id]), landing);
  }

  /** Requests a flush now. The flush does not cover later commits. */
  #flushed(): Landing {
    return this.#database.flushed().then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
  }
}

function showProgress({ run, epoch, pending }: QueuedEvents): void {
  for (const entry of entriesOfPending(pending, epoch, run.log.last + pending.length)) run.log.push(entry);
  run.log.ring();
}

function newWaiting(run: LiveRun, epoch: number): QueuedEvents {
  return {
    run,
    epoch,
    pending: [],
    written: Promise.withResolvers(),
    chars: 0,
    ends: false,
    isDurable: false,
    until: undefined,
    refusal: undefined,
  };
}
