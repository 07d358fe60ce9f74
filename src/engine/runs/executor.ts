// Executes runs in this process, one per slot. Claims runs that wait for a slot or whose process died. At shutdown,
// ends the remaining runs.

import { setImmediate as nextTurn } from "node:timers/promises";
import { AppError } from "../../agent/core/errors.ts";
import { sharedPlaces } from "../../agent/core/shares.ts";
import type { Claim, Lease, StopMode } from "../../agent/core/stores.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import type { Owner } from "../../protocol/ids.ts";
import { ActiveRuns, type Sender } from "./active-runs.ts";
import { drive, ringAfter } from "./drive.ts";
import { logFailedRun, logFailure } from "./logging.ts";
import type { RunServices } from "./services.ts";
import { type ClaimSlots, type Slot, Slots } from "./slots.ts";
import { SUBAGENT_LIMITS, type SubagentLimits, SubagentPlaces, type TreeKey } from "./subagent-places.ts";

/** The number of runs to adopt at a time. A small number lets new runs get a slot in between. */
const BATCH_SIZE = 32;
/** The time that a stopped run has to write its end, or to end its tools before it is handed over, in milliseconds. */
const DRAIN_MS = 3_000;

/** The services that the functions of this room need. */
export interface Runs extends RunServices {
  readonly executor: Executor;
}

export interface ExecutorOptions extends RunServices {
  /** The maximum number of runs that this process executes at once. Other runs wait until a process has a free slot. */
  readonly maxActive: number;
  /** If true, tenants get fair shares of the slots. Defaults to false. */
  readonly hasSeveralTenants?: boolean;
  /** Defaults to `SUBAGENT_LIMITS`. */
  readonly subagentLimits?: SubagentLimits;
}

export class Executor {
  readonly #options: ExecutorOptions;
  readonly #active: ActiveRuns;
  readonly #slots: Slots;
  readonly #outsideSlots = new Set<Promise<void>>();
  readonly #subagentPlaces: SubagentPlaces;
  #timers: NodeJS.Timeout[] = [];
  #polling: Promise<void> | undefined;
  #pollsAgain = false;
  /** True if there may be more waiting runs than slots. */
  #mayWait = false;
  #isClosing = false;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#active = new ActiveRuns(options);
    const { maxActive, hasSeveralTenants = false, subagentLimits = SUBAGENT_LIMITS } = options;
    this.#subagentPlaces = new SubagentPlaces(subagentLimits, hasSeveralTenants);
    this.#slots = new Slots(sharedPlaces(maxActive, hasSeveralTenants), {
      work: (claim) => this.#work(claim),
      onFree: () => {
        if (this.#mayWait) void this.poll();
      },
    });
  }

  /** Reports a run that the store has ended because it crashed too many processes. */
  #reportCrashed(claim: Claim, end: StreamEvent): void {
    const { listeners = [] } = this.#options;
    if (end.event === "error") logFailedRun(this.#options, claim, crashed(end.data.message));
    for (const listen of listeners) void listen(claim).afterWrite?.(end);
    void ringAfter(this.#options, claim, end);
  }

  /** Adopts the runs that earlier processes left behind, and starts renewing leases. */
  async open(): Promise<void> {
    const { runs } = this.#options.stores;
    runs.subscribe((call) => {
      if (call.call === "stop") this.stop(call.run_id, call.mode);
      else if (call.call === "crashed") this.#reportCrashed(call.claim, call.end);
      // The end of a run is published before the start of the next one.
      else setImmediate(() => void this.poll());
    });
    await this.poll();
    // Adds jitter so the processes of a deployment do not poll at the same time.
    const spread = 0.75 + Math.random() / 2;
    this.#timers = [
      setInterval(() => void this.#active.renewAll(), runs.leaseMs / 3),
      setInterval(() => void this.poll(), (runs.leaseMs / 4) * spread),
    ];
    for (const timer of this.#timers) timer.unref();
  }

  /** The number of runs that this process executes, including runs outside the slots. */
  get active(): number {
    return this.#active.size;
  }

  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** Returns undefined if all slots are taken or the tenant has used its whole share. */
  takeSlot(tenant: string): Slot | undefined {
    return this.#slots.take(tenant);
  }

  /**
   * Executes a run that another run waits for. It counts as a working subagent but takes no slot, because otherwise the
   * two runs could wait for each other.
   */
  executeOutsideSlots(claim: Claim): void {
    const enter = (signal: AbortSignal) => this.#subagentPlaces.enter(treeOf(claim), claim.run.id, signal);
    const work = this.#execute(claim, enter).finally(() => this.#outsideSlots.delete(work));
    this.#outsideSlots.add(work);
  }

  /** Executes a subagent's run outside the slots if its process died or no process has claimed it. Never throws. */
  async adoptOrphan(owner: Owner, threadId: string): Promise<void> {
    if (this.#isClosing) return;
    try {
      const claim = await this.#options.stores.runs.claimNext(owner, threadId);
      if (claim) this.executeOutsideSlots(claim);
    } catch (err) {
      logFailure(this.#options.logger, { err, thread_id: threadId }, "could not claim a subagent's run");
    }
  }

  /** Counts a subagent that is about to start. Throws `limit_exceeded` if its tree of runs has started too many. */
  countSubagent({ tenant, user }: Owner, root: string): void {
    this.#subagentPlaces.start({ tenant, user, root });
  }

  /**
   * Marks the run as waiting for subagents until the returned function is called. That function's promise resolves when
   * the run can continue, or when `signal` aborts.
   */
  pause(runId: string, signal: AbortSignal): () => Promise<void> {
    return this.#subagentPlaces.pause(runId, signal);
  }

  /** Stops a run of this process now or after its current step. */
  stop(runId: string, mode: StopMode): void {
    this.#active.stop(runId, mode);
  }

  /** Claims queued and abandoned runs while there are free slots. Never throws. */
  async poll(): Promise<void> {
    this.#pollsAgain = true;
    this.#polling ??= this.#pollWhileAsked();
    return this.#polling;
  }

  /**
   * Stops accepting runs and waits up to `graceMs` milliseconds for the runs in progress to end. Then hands over the remaining
   * runs to another process. If the store does not outlive this process, ends them with `shutting_down` instead.
   */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    await this.#idle(graceMs);
    this.#active.endAll(
      new AppError("shutting_down", "The server is shutting down. Completed work is kept."),
    );
    await this.#idle(DRAIN_MS);
    for (const timer of this.#timers) clearInterval(timer);
    await this.#active.abandonAll();
  }

  /** Keeps the slot for waiting runs, so new requests cannot overtake them. */
  async #work(first: Claim): Promise<"free" | "claim"> {
    for (let claim: Claim | undefined = first; claim; claim = await this.#next(claim.lease)) {
      await this.#execute(claim);
      await nextTurn();
      if (this.#isClosing) return "free";
      this.#mayWait ||= this.#slots.areAllTaken;
      if (this.#mayWait) return "claim";
    }
    return "free";
  }

  /** `enter` resolves when the run can start working, with a function to call at its end. */
  async #execute(
    claim: Claim,
    enter: (signal: AbortSignal) => Promise<() => void> = async () => () => {},
  ): Promise<void> {
    const { run } = claim;
    const active = this.#active.add(claim);
    const { abort, handOver } = active;
    // A user may have requested a stop before the previous process died.
    if (run.attempt > 1) await this.#active.renew(active);
    const control = {
      signal: abort.signal,
      handedOver: handOver.signal,
      interruptRequested: () => active.interrupt,
    };
    const stopWatching = await this.#cancelWithKey(claim, abort);
    const leaveTree = this.#subagentPlaces.join(treeOf(claim));
    const leave = await enter(abort.signal);
    try {
      await this.#options.stores.inRun(() => drive(claim, this.#options, control));
    } catch (err) {
      abort.abort(err);
      if (!handOver.signal.aborted) {
        logFailedRun(this.#options, claim, err);
        await this.#active.excuse(active);
      }
    } finally {
      leave();
      leaveTree();
      stopWatching();
    }
    await this.#active.remove(active);
    // This run may have blocked others.
    if (claim.deaths !== undefined) void this.poll();
  }

  /** Cancels the run if the key that started it is revoked, even before the run begins. Never throws. */
  async #cancelWithKey({ request }: Claim, abort: AbortController): Promise<() => void> {
    const { startingKeys } = this.#options;
    const { api_key } = request;
    if (!startingKeys || api_key === undefined) return () => {};
    const cancel = () =>
      abort.abort(new AppError("credentials_revoked", "The API key that started the run was revoked."));
    // If the key store fails, keys count as valid.
    if (await startingKeys.isRevoked(api_key).catch(() => false)) cancel();
    return startingKeys.watch(api_key, cancel);
  }

  /** Returns the API key and the request that started a run of this process. */
  senderOf(runId: string): Sender {
    return this.#active.senderOf(runId);
  }

  /** If there are free slots, the only run that can be waiting is the next run of this thread. */
  async #next({ owner, thread_id }: Lease): Promise<Claim | undefined> {
    try {
      return await this.#options.stores.runs.claimNext(owner, thread_id);
    } catch (err) {
      logFailure(this.#options.logger, { err, thread_id }, "could not claim the next run");
      return undefined;
    }
  }

  async #pollWhileAsked(): Promise<void> {
    while (this.#pollsAgain && !this.#isClosing) {
      this.#pollsAgain = false;
      try {
        while (await this.#claimBatch());
      } catch (err) {
        logFailure(this.#options.logger, { err }, "could not check for abandoned runs");
      }
    }
    this.#slots.release();
    // Must happen in the same tick as the last check of `#pollsAgain`, so no request is missed.
    this.#polling = undefined;
  }

  /** Returns false if nothing is left to claim, or if there is no slot for it. */
  async #claimBatch(): Promise<boolean> {
    const slots = this.#slots.claim(BATCH_SIZE);
    this.#mayWait = true;
    let claims: Claim[] = [];
    try {
      if (slots.count > 0) claims = await this.#claim(slots);
      this.#mayWait = claims.length === slots.count || slots.except.length > 0;
      return claims.length > 0 && claims.length === slots.count;
    } finally {
      slots.execute(claims);
    }
  }

  async #claim({ count, except }: ClaimSlots): Promise<Claim[]> {
    const { stores, logger } = this.#options;
    await this.#active.renewIfLate();
    const claims = await stores.runs.claimAbandoned(count, except, this.#active.mostDeaths);
    for (const { run } of claims) {
      const { id: run_id, thread_id, attempt } = run;
      if (attempt > 1) logger.info({ run_id, thread_id, attempt }, "taking a run over");
    }
    return claims;
  }

  /** Waits until no runs are executing, for at most `withinMs` milliseconds. */
  async #idle(withinMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, withinMs);
    await Promise.race([this.#allEnded(), promise]);
    clearTimeout(timer);
  }

  async #allEnded(): Promise<void> {
    await this.#slots.idle;
    while (this.#outsideSlots.size > 0) await Promise.all(this.#outsideSlots);
  }
}

const crashed = (message: string) => new AppError("crashed_too_often", message);

const treeOf = ({ lease: { owner, thread_id }, request: { lineage } }: Claim): TreeKey => ({
  tenant: owner.tenant,
  user: owner.user,
  root: lineage?.root ?? thread_id,
});
