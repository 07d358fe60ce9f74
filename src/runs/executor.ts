// Executes runs in this process: as many at once as it has slots, each as long as its lease is kept. Looks after runs
// that nobody executes, and hands its own over when the process ends.

import { setImmediate as nextTurn } from "node:timers/promises";
import { AppError, hasCode } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import type { Claim, Lease, StopMode } from "../core/stores.ts";
import type { Logger } from "../lib/logger.ts";
import { drive } from "./drive.ts";
import { logFailedRun } from "./logging.ts";
import type { DriveServices } from "./services.ts";

/** Runs that are taken up in one go, so that newcomers find room meanwhile. */
const AT_ONCE = 32;
/** How long a stopped run may take to write its end, or to end its tools before it is handed over. */
const LAST_WORDS_MS = 3_000;

export interface ExecutorOptions extends DriveServices {
  /** Runs that this process executes at once. Past it they wait until some process has room. */
  readonly maxActive: number;
  readonly logger: Logger;
}

interface ActiveRun {
  readonly lease: Lease;
  readonly abort: AbortController;
  /** Aborted when the run goes on elsewhere: nothing more is written for it here. */
  readonly leave: AbortController;
  /** By `performance.now()`. */
  renewedAt: number;
  interrupt: boolean;
}

export class Executor {
  readonly #options: ExecutorOptions;
  readonly #active = new Map<string, ActiveRun>();
  readonly #slots: Slots;
  /** What is executed beside the slots. */
  readonly #aside = new Set<Promise<void>>();
  #timers: NodeJS.Timeout[] = [];
  #looking: Promise<void> | undefined;
  #looksAgain = false;
  /** Whether more runs may have waited than there was room for. */
  #mayWait = false;
  /** When all leases were renewed, by the clock on the wall: it goes on while the machine sleeps. */
  #renewedAt = Date.now();
  #isClosing = false;
  /** Why nothing is executed any more. */
  #ended: AppError | undefined;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    const onFree = () => {
      if (this.#mayWait) void this.look();
    };
    this.#slots = new Slots(options.maxActive, (claim) => this.#work(claim), onFree);
  }

  /** Takes up what earlier processes left, and begins to keep leases. */
  async open(): Promise<void> {
    const { runs } = this.#options.stores;
    runs.listen((call) => {
      if (call.call === "stop") this.stop(call.run_id, call.mode);
      // The end of one run is told to its user before the start of the next.
      else setImmediate(() => void this.look());
    });
    await this.look();
    // The processes of a deployment shall not all look at the same moment.
    const spread = 0.75 + Math.random() / 2;
    this.#timers = [
      setInterval(() => void this.#renew(), runs.leaseMs / 3),
      setInterval(() => void this.look(), (runs.leaseMs / 4) * spread),
    ];
    for (const timer of this.#timers) timer.unref();
  }

  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** Nothing when all slots are taken. */
  takeSlot(): Slot | undefined {
    return this.#slots.take();
  }

  /** Executes a run for which somebody waits who has a slot, or is executed so too. */
  executeAside(claim: Claim): void {
    const work = this.#execute(claim).finally(() => this.#aside.delete(work));
    this.#aside.add(work);
  }

  /** The same of what nobody executes on a thread. Never throws. */
  async takeUp(owner: Owner, threadId: string): Promise<void> {
    if (this.#isClosing) return;
    try {
      const claim = await this.#options.stores.runs.claimNext(owner, threadId);
      if (claim) this.executeAside(claim);
    } catch (err) {
      this.#options.logger.error({ err, thread_id: threadId }, "could not take a subagent's run");
    }
  }

  /** Stops a run that this process executes: now, or after its current step. */
  stop(runId: string, mode: StopMode): void {
    const active = this.#active.get(runId);
    if (!active) return;
    if (mode === "interrupt") active.interrupt = true;
    else active.abort.abort(new AppError("cancelled", "The run was cancelled."));
  }

  /** Takes up runs that nobody executes, as far as there is room. Never throws. */
  async look(): Promise<void> {
    this.#looksAgain = true;
    this.#looking ??= this.#lookWhileAsked();
    return this.#looking;
  }

  /**
   * Takes no more runs, waits for the running ones up to `graceMs`. What is not done then is handed over to whoever
   * looks next; where runs cannot outlast the process they end with `shutting_down`.
   */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    await this.#idle(graceMs);
    this.#ended = new AppError("shutting_down", "The server is shutting down. What was done is kept.");
    for (const active of this.#active.values()) this.#end(active, this.#ended);
    await this.#idle(LAST_WORDS_MS);
    for (const timer of this.#timers) clearInterval(timer);
    const stuck = [...this.#active.values()];
    this.#active.clear();
    await Promise.all(stuck.map((active) => this.#leave(active)));
  }

  /** A slot goes on from run to run while others wait: who comes anew does not overtake them. */
  async #work(first: Claim): Promise<void> {
    for (let claim: Claim | undefined = first; claim; claim = await this.#next(claim.lease))
      await this.#execute(claim);
  }

  async #execute(claim: Claim): Promise<void> {
    const { lease, run } = claim;
    // A process that slept past its lease may be given its own run again: the first attempt then ends.
    this.#active.get(run.id)?.abort.abort(new AppError("lease_lost", "The run was taken over."));
    const abort = new AbortController();
    const leave = new AbortController();
    const active = { lease, abort, leave, renewedAt: performance.now(), interrupt: false };
    this.#active.set(run.id, active);
    if (this.#ended) this.#end(active, this.#ended);
    // What it was asked before its process died.
    if (run.attempt > 1) await this.#renewOne(active);
    const interruptRequested = () => active.interrupt;
    try {
      const control = { signal: abort.signal, left: leave.signal, interruptRequested };
      await this.#options.stores.inRun(() => drive(claim, this.#options, control));
    } catch (err) {
      abort.abort(err);
      if (!leave.signal.aborted) logFailedRun(this.#options.logger, claim, err);
    }
    if (this.#active.get(run.id) !== active) return;
    this.#active.delete(run.id);
    if (leave.signal.aborted) await this.#release(lease);
  }

  async #next({ owner, thread_id }: Lease): Promise<Claim | undefined> {
    await nextTurn();
    if (this.#isClosing) return undefined;
    try {
      // Where there is room for all, only the thread's own next run may wait.
      if (!this.#slots.areAllTaken) return await this.#options.stores.runs.claimNext(owner, thread_id);
      return (await this.#abandoned(1))[0];
    } catch (err) {
      this.#options.logger.error({ err, thread_id }, "could not take the next run");
      return undefined;
    }
  }

  async #lookWhileAsked(): Promise<void> {
    while (this.#looksAgain && !this.#isClosing) {
      this.#looksAgain = false;
      try {
        while ((await this.#takeUp()) === AT_ONCE);
      } catch (err) {
        this.#options.logger.error({ err }, "could not look for abandoned runs");
      }
    }
    // In the same step in which nobody had asked: who asks from now on begins anew.
    this.#looking = undefined;
  }

  /** Returns how many runs were taken up. */
  async #takeUp(): Promise<number> {
    const slots = Array.from({ length: AT_ONCE }, () => this.takeSlot()).filter((slot) => slot !== undefined);
    this.#mayWait = true;
    let found = 0;
    try {
      const claims = slots.length > 0 ? await this.#abandoned(slots.length) : [];
      found = claims.length;
      for (const [index, claim] of claims.entries()) slots[index]?.execute(claim);
      return found;
    } finally {
      this.#mayWait = found === slots.length;
      for (const slot of slots) slot.free();
    }
  }

  async #abandoned(limit: number): Promise<Claim[]> {
    const { runs } = this.#options.stores;
    // A process that has slept past its leases still has its runs: they are not abandoned.
    if (Date.now() - this.#renewedAt > runs.leaseMs / 2) await this.#renew();
    const claims = await runs.claimAbandoned(limit);
    for (const { run } of claims) {
      const { id: run_id, thread_id, attempt } = run;
      if (attempt > 1) this.#options.logger.info({ run_id, thread_id, attempt }, "taking a run over");
    }
    return claims;
  }

  /** Never throws. A lease that is lost ends its run; so does one that cannot be renewed until it is over. */
  async #renew(): Promise<void> {
    this.#renewedAt = Date.now();
    const results = await Promise.all([...this.#active.values()].map((active) => this.#renewOne(active)));
    const failures = results.filter((err) => err !== undefined);
    if (failures.length > 0)
      this.#options.logger.error({ err: failures[0], runs: failures.length }, "could not renew leases");
  }

  async #renewOne(active: ActiveRun): Promise<unknown> {
    const { lease, abort } = active;
    const { leaseMs } = this.#options.stores.runs;
    const asked = performance.now();
    try {
      const { stop } = await this.#options.stores.runs.renew(lease);
      active.renewedAt = asked;
      if (stop) this.stop(lease.run_id, stop);
      return undefined;
    } catch (err) {
      // It has ended meanwhile, and with that its lease.
      if (this.#active.get(lease.run_id) !== active) return undefined;
      if (hasCode(err, "lease_lost")) abort.abort(err);
      else if (performance.now() - active.renewedAt > leaseMs) abort.abort(storeWasAway(leaseMs));
      return err;
    }
  }

  async #release(lease: Lease): Promise<void> {
    try {
      await this.#options.stores.runs.release(lease);
    } catch (err) {
      if (hasCode(err, "lease_lost")) return;
      this.#options.logger.error(
        { err, run_id: lease.run_id },
        "could not hand a run over; its lease runs out",
      );
    }
  }

  /** Stops what `active` does. Where it can go on elsewhere it is left for that. */
  #end({ abort, leave }: ActiveRun, reason: AppError): void {
    if (this.#options.stores.isDurable) leave.abort(reason);
    abort.abort(reason);
  }

  /** One that does not end. Should it do so later, it writes nothing any more. */
  async #leave({ leave, lease }: ActiveRun): Promise<void> {
    leave.abort();
    if (this.#options.stores.isDurable) await this.#release(lease);
  }

  /** Waits until nothing is executed, `withinMs` at most. */
  async #idle(withinMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, withinMs);
    await Promise.race([this.#allEnded(), promise]);
    clearTimeout(timer);
  }

  async #allEnded(): Promise<void> {
    await this.#slots.idle;
    while (this.#aside.size > 0) await Promise.all(this.#aside);
  }
}

function storeWasAway(leaseMs: number): AppError {
  const message = `The store was away for longer than ${leaseMs / 1000} s, which is as long as a run waits for it.`;
  return new AppError("unavailable", message);
}

// The runs that a process may execute at once.

/** Room for one run. */
export interface Slot {
  /** The run has it until it ends. */
  execute(claim: Claim): void;
  /** To be called in any case; does nothing once a run has it. */
  free(): void;
}

export class Slots {
  readonly #size: number;
  readonly #execute: (claim: Claim) => Promise<void>;
  readonly #onFree: () => void;
  #taken = 0;
  #idle = Promise.withResolvers<void>();

  /**
   * `execute` resolves when the slot is no longer needed; it must not throw. `onFree` is told of every slot that comes
   * free.
   */
  constructor(size: number, execute: (claim: Claim) => Promise<void>, onFree: () => void) {
    this.#size = size;
    this.#execute = execute;
    this.#onFree = onFree;
    this.#idle.resolve();
  }

  get areAllTaken(): boolean {
    return this.#taken >= this.#size;
  }

  /** Resolves when none is taken. */
  get idle(): Promise<void> {
    return this.#idle.promise;
  }

  /** Nothing when all are taken. */
  take(): Slot | undefined {
    if (this.areAllTaken) return undefined;
    if (this.#taken++ === 0) this.#idle = Promise.withResolvers();
    let isMine = true;
    return {
      execute: (claim) => {
        isMine = false;
        void this.#execute(claim).finally(() => this.#free());
      },
      free: () => {
        if (isMine) this.#free();
        isMine = false;
      },
    };
  }

  #free(): void {
    if (--this.#taken === 0) this.#idle.resolve();
    this.#onFree();
  }
}
