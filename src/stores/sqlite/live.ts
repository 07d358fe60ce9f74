// What this process knows of the runs that have not ended: who may write them, and the newest of their events.
//
// Who holds a run is known here only. The file belongs to one process, so when that dies nobody holds any.

import type { Lease, RunKey, StopMode } from "../../core/stores.ts";
import { Log } from "../log.ts";
import { OwnerMap } from "../owner-map.ts";
import { leaseLost, storeClosed } from "../refusals.ts";
import type { Database } from "./database.ts";
import { rowKey } from "./keys.ts";

/** What is kept of a run for viewers who follow closely: so many entries, so many bytes. All others read the table. */
const TAIL = 64;
const TAIL_BYTES = 256 * 1024;

export interface Hold {
  readonly epoch: number;
  stop: StopMode | undefined;
}

export interface LiveRun {
  readonly key: RunKey;
  readonly log: Log;
  /** Absent while the run waits, or nobody executes it. */
  hold: Hold | undefined;
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
  leased(lease: Lease): LiveRun & { hold: Hold } {
    const run = this.#runs.get(lease.owner, place(lease));
    if (run?.hold?.epoch !== lease.epoch || !hasHold(run)) throw leaseLost(lease);
    return run;
  }

  /** A run that has not ended. */
  open(key: RunKey): LiveRun {
    const known = this.#runs.get(key.owner, place(key));
    if (known) return known;
    const last = this.#newest.get(...rowKey(key))?.last ?? 0;
    const run: LiveRun = { key, log: new Log(TAIL, last, TAIL_BYTES), hold: undefined };
    this.#runs.set(key.owner, place(key), run);
    return run;
  }

  /** Whether a process may write the run. */
  isHeld(key: RunKey): boolean {
    return this.epochOf(key) !== undefined;
  }

  epochOf(key: RunKey): number | undefined {
    return this.#runs.get(key.owner, place(key))?.hold?.epoch;
  }

  hold(key: RunKey, epoch: number, stop: StopMode | undefined): void {
    this.open(key).hold = { epoch, stop };
  }

  release(key: RunKey): void {
    this.open(key).hold = undefined;
  }

  stop(key: RunKey, mode: StopMode): void {
    const hold = this.#runs.get(key.owner, place(key))?.hold;
    if (hold) hold.stop = mode;
  }

  end({ key, log }: LiveRun): void {
    this.#runs.delete(key.owner, place(key));
    log.end();
  }

  /** Readers who wait get `unavailable`. */
  close(): void {
    for (const { log } of this.#runs.values()) log.close(storeClosed());
  }
}

const place = ({ thread_id, run_id }: RunKey) => `${thread_id}/${run_id}`;

function hasHold(run: LiveRun): run is LiveRun & { hold: Hold } {
  return run.hold !== undefined;
}
