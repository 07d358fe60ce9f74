// The runs that this process executes. Renews their leases, stops runs whose lease is lost, and hands over the
// remaining runs at shutdown.

import { AppError, hasCode } from "../../agent/core/errors.ts";
import { isSettled, type RunRequest } from "../../agent/core/records.ts";
import type { Claim, Lease, StopMode } from "../../agent/core/stores.ts";
import { mostDeathsBeside } from "../../agent/core/trials.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { RunServices } from "./services.ts";

/** The API key and the request that started a run. */
export type Sender = Pick<RunRequest, "api_key" | "origin">;

export interface ActiveRun {
  readonly lease: Lease;
  readonly sender: Sender;
  readonly abort: AbortController;
  /** Aborts when another process continues the run. This process then stops writing to it. */
  readonly handOver: AbortController;
  /** The time in milliseconds, by `performance.now()`. */
  renewedAt: number;
  interrupt: boolean;
}

/**
 * The time without a crash after which a previously crashed run is acquitted and no longer blocks others, in
 * milliseconds.
 */
const TRIAL_MS = 120_000;

export class ActiveRuns {
  readonly #services: Pick<RunServices, "stores" | "logger">;
  readonly #runs = new Map<string, ActiveRun>();
  /**
   * For each run that died before: the number of its deaths, and the time at which this process began to
   * execute it, by `performance.now()`.
   */
  readonly #suspects = new Map<ActiveRun, { readonly deaths: number; readonly since: number }>();
  /** The time at which all leases were renewed, by the wall clock, which advances while the machine sleeps. */
  #renewedAt = Date.now();
  /** The reason why no more runs are executed. */
  #ended: AppError | undefined;

  constructor(services: Pick<RunServices, "stores" | "logger">) {
    this.#services = services;
  }

  get size(): number {
    return this.#runs.size;
  }

  /** The maximum number of earlier deaths that a run can have to start alongside the runs executed here. */
  get mostDeaths(): number {
    return mostDeathsBeside([...this.#suspects.values()].map(({ deaths }) => deaths));
  }

  add({ lease, run, request: { api_key, origin }, deaths }: Claim): ActiveRun {
    // A process that slept past its lease may receive its own run again. The first attempt then ends.
    this.#runs.get(run.id)?.abort.abort(new AppError("lease_lost", "The run was taken over."));
    const active = {
      lease,
      sender: omitUndefined({ api_key, origin }),
      abort: new AbortController(),
      handOver: new AbortController(),
      renewedAt: performance.now(),
      interrupt: false,
    };
    this.#runs.set(run.id, active);
    if (deaths !== undefined) this.#suspects.set(active, { deaths, since: performance.now() });
    if (this.#ended) this.#end(active, this.#ended);
    return active;
  }

  /** Removes a run whose execution ended here. Returns its lease if another process must continue it. */
  async remove(active: ActiveRun): Promise<void> {
    const { lease, handOver } = active;
    this.#suspects.delete(active);
    if (this.#runs.get(lease.run_id) !== active) return;
    this.#runs.delete(lease.run_id);
    if (handOver.signal.aborted) await this.#release(lease);
  }

  /** Records that the process did not crash in this run, although the run was not completed. Never throws. */
  async excuse({ lease }: Pick<ActiveRun, "lease">): Promise<void> {
    try {
      await this.#services.stores.runs.excuse(lease);
    } catch (err) {
      const { run_id } = lease;
      this.#services.logger.warn({ err, run_id }, "a lost run counts as a crash of this process");
    }
  }

  senderOf(runId: string): Sender {
    return this.#runs.get(runId)?.sender ?? {};
  }

  /** Stops a run now or after its current step. */
  stop(runId: string, mode: StopMode): void {
    const active = this.#runs.get(runId);
    if (!active) return;
    if (mode === "interrupt") active.interrupt = true;
    else active.abort.abort(new AppError("cancelled", "The run was cancelled."));
  }

  /** Renews all leases. Ends a run whose lease was lost, or expired before it was renewed. Never throws. */
  async renewAll(): Promise<void> {
    this.#renewedAt = Date.now();
    const results = await Promise.all([...this.#runs.values()].map((active) => this.renew(active)));
    await this.#acquitLongLived();
    const failures = results.filter((err) => err !== undefined);
    if (failures.length === 0) return;
    const line = { err: failures[0], runs: failures.length };
    const lost = failures.find((err) => hasCode(err, "lease_lost"));
    if (lost) this.#services.logger.error({ ...line, err: lost }, "could not renew leases");
    else this.#services.logger.warn(line, "could not renew leases yet");
  }

  /** Acquits runs that have run long enough. Until then they block others. Never throws. */
  async #acquitLongLived(): Promise<void> {
    const { stores, logger } = this.#services;
    for (const [active, { since }] of this.#suspects) {
      if (performance.now() - since < TRIAL_MS) continue;
      const { run_id } = active.lease;
      try {
        await stores.runs.acquit(active.lease);
        this.#suspects.delete(active);
      } catch (err) {
        logger.warn({ err, run_id }, "a long-lived run is still suspected of its crashes");
      }
    }
  }

  /** Renews leases after the machine has slept, when they look abandoned to this process and to others. */
  async renewIfLate(): Promise<void> {
    if (Date.now() - this.#renewedAt > this.#services.stores.runs.leaseMs / 2) await this.renewAll();
  }

  /** Never throws. Returns the reason if the lease could not be renewed. */
  async renew(active: ActiveRun): Promise<unknown> {
    const { lease, abort } = active;
    const { runs } = this.#services.stores;
    const asked = performance.now();
    try {
      const { stop } = await runs.renew(lease);
      active.renewedAt = asked;
      if (stop) this.stop(lease.run_id, stop);
      return undefined;
    } catch (err) {
      // The run has ended in the meantime, and so has its lease.
      if (this.#runs.get(lease.run_id) !== active) return undefined;
      if (hasCode(err, "lease_lost")) {
        if (await this.#hasEnded(lease)) return undefined;
        abort.abort(err);
      }
      if (performance.now() - active.renewedAt > runs.leaseMs) abort.abort(storeUnreachable(runs.leaseMs));
      return err;
    }
  }

  /**
   * Returns true if the run's end is stored, even if this process was not informed. In that case, no other process has
   * its lease.
   */
  async #hasEnded({ owner, thread_id, run_id }: Lease): Promise<boolean> {
    const run = await this.#services.stores.runs.get(owner, thread_id, run_id).catch(() => undefined);
    return run !== undefined && isSettled(run.status);
  }

  /** Stops all runs, even runs that are added later. With a durable store, another process continues them. */
  endAll(reason: AppError): void {
    this.#ended = reason;
    for (const active of this.#runs.values()) this.#end(active, reason);
  }

  /** Abandons runs that do not end. They can no longer write anything. */
  async abandonAll(): Promise<void> {
    const stuck = [...this.#runs.values()];
    this.#runs.clear();
    await Promise.all(
      stuck.map(async ({ handOver, lease }) => {
        handOver.abort();
        if (this.#services.stores.isDurable) await this.#release(lease);
      }),
    );
  }

  #end({ abort, handOver }: ActiveRun, reason: AppError): void {
    if (this.#services.stores.isDurable) handOver.abort(reason);
    abort.abort(reason);
  }

  async #release(lease: Lease): Promise<void> {
    try {
      await this.#services.stores.runs.release(lease);
    } catch (err) {
      if (hasCode(err, "lease_lost")) return this.excuse({ lease });
      const { run_id } = lease;
      this.#services.logger.error({ err, run_id }, "could not hand a run over; its lease will expire");
    }
  }
}

function storeUnreachable(leaseMs: number): AppError {
  return new AppError("unavailable", `The store was unreachable for more than ${leaseMs / 1000} s.`);
}
