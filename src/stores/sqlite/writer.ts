// Batches the appends to the file: what several runs emit at about the same time is written in one transaction.
//
// Progress events are written in the same turn of the event loop as well, unless the last write took long: then they wait for
// MAX_WAIT_MS or MAX_WAITING events. Every other event is written with all of its run that waits before it, and is on disk when
// its append resolves and readers get it. Until then later events of its run wait, and those of other runs do not. When much
// waits, one turn writes the events of some runs, and the next one those of others.

import { isProgress, type StreamEvent } from "../../core/event.ts";
import type { Lease, RunKey } from "../../core/stores.ts";
import { isWithNext } from "../../core/stream.ts";
import { leaseLost } from "../errors.ts";
import { entriesOfPending } from "../log-rows.ts";
import { changesThread, hasEnd, type PendingEvent, pendingEvent } from "../outcomes.ts";
import { ownerText, type ThreadKey } from "../row-keys.ts";
import type { EventCommitter } from "./commit-events.ts";
import { type AfterCommit, type Database, mayPass } from "./database.ts";
import type { LiveRun, LiveRuns } from "./live-runs.ts";
import { PAUSE_MS } from "./patience.ts";
import type { Tail } from "./tail.ts";

const MAX_WAIT_MS = 5;
/** Progress is written for at most a fifth of the time. */
const WAIT_PER_WORK = 4;
const MAX_WAITING = 64;
const SHORTEST_TIMER_MS = 1;
/** Of what is written in one turn of the event loop; one turn ends with the run that passes it. */
const TURN_CHARS = 256 * 1024;

/** What is committed of one run and not on disk yet. */
interface Flushing {
  readonly run: LiveRun;
  readonly written: PromiseWithResolvers<void>;
  readonly ends: boolean;
}

/** What waits of one run. */
interface Waiting extends Flushing {
  readonly epoch: number;
  readonly pending: PendingEvent[];
  chars: number;
  ends: boolean;
  isDurable: boolean;
  /** When it is given up, once the file has refused it, and why it did. */
  until: number | undefined;
  refusal: unknown;
}

interface Parts {
  readonly database: Database;
  readonly live: LiveRuns;
  readonly commit: EventCommitter;
  readonly tail: Tail;
}

export class Writer {
  readonly #database: Database;
  readonly #live: LiveRuns;
  readonly #commit: EventCommitter;
  readonly #tail: Tail;
  readonly #waiting = new Map<LiveRun, Waiting>();
  /** What is committed and on its way to the disk. */
  readonly #flushing = new Map<LiveRun, Flushing>();
  /** Events that may be written. */
  #count = 0;
  #timer: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;
  /** When progress may be written again. */
  #restsUntil = 0;
  readonly #patienceMs: number;
  /** Until when nothing is tried, after the file has refused something. */
  #pausesUntil = 0;
  #isClosed = false;

  /** What the file may take later waits for `patienceMs`. */
  constructor({ database, live, commit, tail }: Parts, patienceMs: number) {
    this.#patienceMs = patienceMs;
    this.#database = database;
    this.#live = live;
    this.#commit = commit;
    this.#tail = tail;
  }

  /** Resolves when `events` are written. Throws `lease_lost`, or what is wrong with them, before anything is. */
  append(lease: Lease, events: readonly StreamEvent[]): Promise<void> {
    this.#database.assertOpen();
    const run = this.#live.leased(lease);
    const waiting = this.#waiting.get(run) ?? newWaiting(run, lease.epoch);
    if (waiting.ends || this.#flushing.get(run)?.ends) throw leaseLost(lease);
    const pending = events.map(pendingEvent);
    waiting.ends = hasEnd(pending);
    const canWait = events.every(({ event }) => isProgress(event));
    // What goes with the next event is on disk with it.
    waiting.isDurable ||= !canWait && !events.every(isWithNext);
    waiting.pending.push(...pending);
    for (const { json } of pending) waiting.chars += json.length;
    this.#waiting.set(run, waiting);
    // What waits for earlier events of its run is counted when these are on disk.
    if (!this.#flushing.has(run)) {
      this.#count += pending.length;
      this.#schedule(canWait);
    }
    return waiting.written.promise;
  }

  /** Writes what may be written now. Resolves when it is on disk, as far as it has to be. Throws nothing: `append` does. */
  async flush(): Promise<void> {
    this.#writeUpTo(Number.POSITIVE_INFINITY);
    await Promise.allSettled(this.#flushing.values().map(({ written }) => written.promise));
  }

  /** Writes everything, for the last time: nothing waits for the file any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    do await this.flush();
    while (this.#waiting.size > 0 || this.#flushing.size > 0);
  }

  /**
   * Does the same for one thread, and returns what to wait for before it is called again; undefined when all is written. To be
   * called before anything that changes who may write there. Throws what the file refuses.
   */
  flushThread([owner, id]: ThreadKey): Promise<void> | undefined {
    const isOfThread = ({ run: { key } }: Flushing) => key.thread_id === id && ownerText(key.owner) === owner;
    const all = [...this.#waiting.values()].filter(isOfThread);
    if (all.length > 0) this.#writeOut(all.filter(({ run }) => !this.#flushing.has(run)));
    const flushing = this.#flushing.values().find(isOfThread);
    if (flushing) return flushing.written.promise.catch(() => {});
    const refused = all.find(({ run }) => this.#waiting.has(run))?.refusal;
    if (refused) throw refused;
    return undefined;
  }

  /** Moves to a run's log what was only kept beside it. Throws `unavailable`. */
  moveToLog(key: RunKey): void {
    const run = this.#live.find(key);
    const kept = run && this.#tail.of(run);
    if (!kept) return;
    this.#database.write((afterCommit) =>
      this.#commit(run, kept.epoch, [], { afterCommit, afterFlush: afterCommit }),
    );
  }

  #writeUpTo(chars: number): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#immediate);
    this.#timer = undefined;
    this.#immediate = undefined;
    const all: Waiting[] = [];
    let left = chars;
    for (const waiting of this.#waiting.values()) {
      if (left <= 0) break;
      if (this.#flushing.has(waiting.run)) continue;
      left -= waiting.chars;
      all.push(waiting);
    }
    this.#writeOut(all);
    if (this.#count > 0) this.#writeLater(() => this.#writeUpTo(TURN_CHARS));
  }

  #writeOut(all: readonly Waiting[]): void {
    for (const { run, pending } of all) {
      this.#waiting.delete(run);
      this.#count -= pending.length;
    }
    const begun = performance.now();
    try {
      this.#write(all);
    } catch {
      // Each by itself: what cannot be written of one run harms no other.
      for (const waiting of all) this.#writeAlone(waiting);
    }
    const ended = performance.now();
    this.#restsUntil = ended + Math.min(MAX_WAIT_MS, WAIT_PER_WORK * (ended - begun));
  }

  #schedule(mayWait: boolean): void {
    const wait = this.#restsUntil - performance.now();
    const write = () => this.#writeUpTo(TURN_CHARS);
    if (this.#isPausing) this.#writeLater(write);
    else if (this.#count >= MAX_WAITING) write();
    else if (!mayWait || wait < SHORTEST_TIMER_MS) this.#immediate ??= setImmediate(write);
    else this.#timer ??= setTimeout(write, wait);
  }

  get #isPausing(): boolean {
    return performance.now() < this.#pausesUntil;
  }

  #writeLater(write: () => void): void {
    if (this.#isPausing) this.#timer ??= setTimeout(write, PAUSE_MS);
    else this.#immediate ??= setImmediate(write);
  }

  #writeAlone(waiting: Waiting): void {
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

  /** It is tried again, with what the run says meanwhile. */
  #putBack(waiting: Waiting): void {
    this.#waiting.set(waiting.run, waiting);
    this.#count += waiting.pending.length;
    this.#pausesUntil = performance.now() + PAUSE_MS;
    this.#writeLater(() => this.#writeUpTo(TURN_CHARS));
  }

  #write(all: readonly Waiting[]): void {
    if (all.length === 0) return;
    const effects: (() => void)[] = [];
    const later = (effect: () => void) => void effects.push(effect);
    this.#database.write((afterCommit) => {
      const short = new Set(all.filter((each) => this.#isForTail(each)));
      const moved = new Set<LiveRun>();
      for (const each of all) {
        if (short.has(each)) continue;
        const { run, epoch, pending, isDurable } = each;
        this.#commit(run, epoch, pending, { afterCommit, afterFlush: isDurable ? later : afterCommit });
        moved.add(run);
      }
      if (short.size > 0) this.#keep([...short], moved, afterCommit);
    });
    const durable = all.filter(({ isDurable }) => isDurable);
    for (const { written, isDurable } of all) if (!isDurable) written.resolve();
    if (durable.length > 0) void this.#finish(durable, effects);
  }

  #isForTail(waiting: Waiting): boolean {
    return !waiting.isDurable && !waiting.pending.some(changesThread) && this.#tail.hasRoomFor(waiting);
  }

  /** Adds to what runs have said last. What others have said long ago moves to their logs, unless it has just been `moved`. */
  #keep(all: readonly Waiting[], moved: ReadonlySet<LiveRun>, afterCommit: AfterCommit): void {
    for (const { run, epoch } of this.#tail.old())
      if (!moved.has(run)) this.#commit(run, epoch, [], { afterCommit, afterFlush: afterCommit });
    this.#tail.keep(all, afterCommit);
    afterCommit(() => {
      for (const { run, epoch, pending } of all) {
        for (const entry of entriesOfPending(pending, epoch, run.log.last + pending.length))
          run.log.push(entry);
        run.log.ring();
      }
    });
  }

  /** Brings what is committed onto the disk, then shows it and answers. */
  async #finish(all: readonly Waiting[], effects: readonly (() => void)[]): Promise<void> {
    for (const each of all) this.#flushing.set(each.run, each);
    const flushed = await this.#database.flushed().catch((error: unknown) => ({ error }));
    if (!flushed) for (const effect of effects) effect();
    for (const { run, written } of all) {
      this.#flushing.delete(run);
      if (flushed) written.reject(flushed.error);
      else written.resolve();
      this.#count += this.#waiting.get(run)?.pending.length ?? 0;
    }
    if (this.#count > 0) this.#writeLater(() => this.#writeUpTo(TURN_CHARS));
  }
}

function newWaiting(run: LiveRun, epoch: number): Waiting {
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
