// The state of unfinished runs that only this process knows: their holders, their newest events, and whose turn it is.
// The file belongs to one process, so runs are no longer held after that process dies.

import type { ControlMessage, Lease, QueueStats, RunKey, StopMode } from "../../../agent/core/stores.ts";
import { leaseLost, storeClosed } from "../errors.ts";
import { FairQueue } from "../fair-queue.ts";
import { ControlChannel } from "../local-bus.ts";
import { Log } from "../log.ts";
import type { Limits } from "../options.ts";
import { OwnerMap } from "../owner-map.ts";
import { ownerOf, rowKey, type ThreadKey, threadOf, threadText } from "../row-keys.ts";
import type { Database } from "./database.ts";

/**
 * The maximum number of a run's entries, and of their bytes, to keep for viewers who follow closely. Other viewers read
 * the table.
 */
const TAIL = 64;
const TAIL_BYTES = 256 * 1024;

export interface LeaseHold {
  readonly epoch: number;
  stop: StopMode | undefined;
}

export interface LiveRun {
  readonly key: RunKey;
  /** The entries that readers can get. */
  readonly log: Log;
  /**
   * The number of the last committed event. If that event must be on disk first, readers get it after it has been
   * flushed.
   */
  written: number;
  /** True if the run's end is committed. */
  hasEnded: boolean;
  /** Absent while no process executes the run. */
  hold: LeaseHold | undefined;
  /** False if the run's inbox is known to be empty, which is nearly always the case, so that no search is needed. */
  mayHaveLeft: boolean;
}

export class LiveRuns {
  readonly #runs = new OwnerMap<LiveRun>();
  readonly #newest;

  constructor(database: Database) {
    this.#newest = database.query<{ last: number | null }>(
      "SELECT max(last_seq) AS last FROM events WHERE owner = ? AND thread_id = ? AND run_id = ?",
    );
  }

  /** Throws `lease_lost`. */
  leased(lease: Lease): LiveRun & { hold: LeaseHold } {
    const run = this.#runs.get(lease.owner, place(lease));
    if (run?.hold?.epoch !== lease.epoch || !hasHold(run) || run.hasEnded) throw leaseLost(lease);
    return run;
  }

  /** Opens a run that has not ended. */
  open(key: RunKey): LiveRun {
    const known = this.find(key);
    if (known) return known;
    return this.#add(key, this.#newest.get(...rowKey(key))?.last ?? 0, true);
  }

  /** Opens a run that has not begun, so it has no events and no inbox. */
  openNew(key: RunKey): LiveRun {
    return this.find(key) ?? this.#add(key, 0, false);
  }

  /** Returns an unfinished run if it was opened. */
  find(key: RunKey): LiveRun | undefined {
    return this.#runs.get(key.owner, place(key));
  }

  #add(key: RunKey, last: number, mayHaveLeft: boolean): LiveRun {
    const log = new Log(TAIL, last, TAIL_BYTES);
    const run: LiveRun = { key, log, written: last, hasEnded: false, hold: undefined, mayHaveLeft };
    this.#runs.set(key.owner, place(key), run);
    return run;
  }

  /** Returns true if a process can write the run. */
  isHeld(key: RunKey): boolean {
    return this.epochOf(key) !== undefined;
  }

  epochOf(key: RunKey): number | undefined {
    return this.find(key)?.hold?.epoch;
  }

  hold(key: RunKey, epoch: number, stop: StopMode | undefined): void {
    this.open(key).hold = { epoch, stop };
  }

  release(key: RunKey): void {
    this.open(key).hold = undefined;
  }

  stop(key: RunKey, mode: StopMode): void {
    const hold = this.find(key)?.hold;
    if (hold) hold.stop = mode;
  }

  end({ key, log }: LiveRun): void {
    this.#runs.delete(key.owner, place(key));
    log.end();
  }

  /** Waiting readers get `unavailable`. */
  close(): void {
    for (const { log } of this.#runs.values()) log.close(storeClosed());
  }
}

const place = ({ thread_id, run_id }: RunKey) => `${thread_id}/${run_id}`;

function hasHold(run: LiveRun): run is LiveRun & { hold: LeaseHold } {
  return run.hold !== undefined;
}

/** The threads with active or waiting runs. Change the queue after the change of the file is committed. */
export interface Queue {
  /** Returns the number of threads of the owner's tenant with active or waiting runs. */
  count(owner: string): number;
  /** Returns true if a run is active or waiting on the thread. */
  isBusy(thread: ThreadKey): boolean;
  /** Returns when the lease of the thread's run ends, or undefined if it has expired. */
  heldUntil(thread: ThreadKey): number | undefined;
  /**
   * Records that a process executes the thread's run. The process must repeat this before the duration of one lease has
   * passed.
   */
  hold(thread: ThreadKey): void;
  /** Records that no run is active or waiting on the thread. */
  drop(thread: ThreadKey): void;
  /** Takes the next thread of a tenant other than `except`. Follow it with `hold`, `putBack` or `drop`. */
  take(except: ReadonlySet<string>): ThreadKey | undefined;
  /** Records that no process executes the thread's run. */
  putBack(thread: ThreadKey): void;
  waiting(): QueueStats;
  call(call: ControlMessage): void;
  subscribe(listener: (call: ControlMessage) => void): void;
  close(): void;
}

export function createQueue(database: Database, limits: Limits): Queue {
  const turns = new FairQueue<string>(limits);
  const calls = new ControlChannel();
  const busy = database.query<{ owner: string; thread_id: string }>(`
    SELECT owner, thread_id FROM (
      SELECT owner, thread_id, created_at FROM runs WHERE status = 'running'
      UNION ALL SELECT owner, thread_id, created_at FROM runs WHERE status = 'pending')
    GROUP BY owner, thread_id ORDER BY min(created_at)`);

  const queue: Queue = {
    count: (owner) => turns.count(tenantOf(owner)),
    isBusy: (thread) => turns.isBusy(tenantOf(thread[0]), threadText(thread)),
    heldUntil: (thread) => turns.heldUntil(threadText(thread)),
    hold: (thread) => turns.hold(tenantOf(thread[0]), threadText(thread)),
    drop: (thread) => turns.drop(tenantOf(thread[0]), threadText(thread)),
    take(except) {
      const text = turns.take(except);
      return text === undefined ? undefined : threadOf(text);
    },
    waiting: () => turns.waiting(),
    putBack: (thread) => turns.wait(tenantOf(thread[0]), threadText(thread)),
    call: (call) => calls.publish(call),
    subscribe: (listener) => calls.subscribe(listener),
    close: () => calls.close(),
  };
  for (const { owner, thread_id } of busy.each()) queue.putBack([owner, thread_id]);
  return queue;
}

const tenantOf = (owner: string) => ownerOf(owner).tenant;
