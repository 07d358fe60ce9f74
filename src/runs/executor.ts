// Executes runs in this process: as many at a time as it has slots, each for as long as its lease is renewed. Adopts runs
// whose process died, and hands its own runs over at shutdown.

import { setImmediate as nextTurn } from "node:timers/promises";
import { AppError, hasCode } from "../core/errors.ts";
import type { StreamEvent } from "../core/event.ts";
import type { Owner } from "../core/ids.ts";
import type { RunRequest } from "../core/records.ts";
import { sharedPlaces } from "../core/shares.ts";
import type { Claim, Lease, StopMode } from "../core/stores.ts";
import { freeTurn } from "../lib/async.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";
import { drive } from "./drive.ts";
import { logFailedRun } from "./logging.ts";
import type { RunServices } from "./services.ts";
import { type ClaimSlots, type Slot, Slots } from "./slots.ts";
import { SUBAGENT_LIMITS, type SubagentLimits, SubagentPlaces, type TreeKey } from "./subagent-places.ts";

/** Runs that are adopted at a time, so that new runs find a slot in between. */
const BATCH_SIZE = 32;
/** How long a stopped run may take to write its end, or to end its tools before it is handed over. */
const DRAIN_MS = 3_000;

/** What the functions of this room work on. */
export interface Runs extends RunServices {
  readonly executor: Executor;
}

export interface ExecutorOptions extends RunServices {
  /** Runs that this process executes at a time. Others wait until a process has a slot. */
  readonly maxActive: number;
  /** Tenants then have fair shares of the slots. Default: false. */
  readonly hasSeveralTenants?: boolean;
  /** Default: `SUBAGENT_LIMITS`. */
  readonly subagentLimits?: SubagentLimits;
}

interface ActiveRun {
  readonly lease: Lease;
  readonly sender: Pick<RunRequest, "api_key" | "origin">;
  readonly abort: AbortController;
  /** Aborted when another process continues the run: nothing more is written for it here. */
  readonly handOver: AbortController;
  /** By `performance.now()`. */
  renewedAt: number;
  interrupt: boolean;
}

export class Executor {
  readonly #options: ExecutorOptions;
  readonly #active = new Map<string, ActiveRun>();
  readonly #slots: Slots;
  readonly #outsideSlots = new Set<Promise<void>>();
  readonly #subagentPlaces: SubagentPlaces;
  #timers: NodeJS.Timeout[] = [];
  #polling: Promise<void> | undefined;
  #pollsAgain = false;
  /** Whether more runs may be waiting than there were slots for. */
  #mayWait = false;
  /** When all leases were renewed, by the wall clock, which also counts while the machine sleeps. */
  #renewedAt = Date.now();
  #isClosing = false;
  /** Why no run is executed any more. */
  #ended: AppError | undefined;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    const { maxActive, hasSeveralTenants = false, subagentLimits = SUBAGENT_LIMITS } = options;
    this.#subagentPlaces = new SubagentPlaces(subagentLimits, hasSeveralTenants);
    this.#slots = new Slots(sharedPlaces(maxActive, hasSeveralTenants), {
      work: (claim) => this.#work(claim),
      onFree: () => {
        if (this.#mayWait) void this.poll();
      },
    });
  }

  /** The store has ended the run: none of its processes could. */
  #reportCrashed(claim: Claim, end: StreamEvent): void {
    const { listeners = [] } = this.#options;
    if (end.event === "error") logFailedRun(this.#options, claim, crashed(end.data.message));
    for (const listen of listeners) void listen(claim).afterWrite?.(end);
  }

  /** Adopts the runs that earlier processes left, and starts to renew leases. */
  async open(): Promise<void> {
    const { runs } = this.#options.stores;
    runs.subscribe((call) => {
      if (call.call === "stop") this.stop(call.run_id, call.mode);
      else if (call.call === "crashed") this.#reportCrashed(call.claim, call.end);
      // The end of a run is published before the start of the next one.
      else setImmediate(() => void this.poll());
    });
    await this.poll();
    // Jitter, so that the processes of a deployment do not poll at the same time.
    const spread = 0.75 + Math.random() / 2;
    this.#timers = [
      setInterval(() => void this.#renew(), runs.leaseMs / 3),
      setInterval(() => void this.poll(), (runs.leaseMs / 4) * spread),
    ];
    for (const timer of this.#timers) timer.unref();
  }

  /** How many runs this process executes, those outside the slots included. */
  get active(): number {
    return this.#active.size;
  }

  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** Undefined if all slots are taken, or the tenant has its share. */
  takeSlot(tenant: string): Slot | undefined {
    return this.#slots.take(tenant);
  }

  /**
   * For a run that another run waits for. It needs no slot of its own, or the two could wait for each other, but a place
   * among the subagents at work.
   */
  executeOutsideSlots(claim: Claim): void {
    const enter = (signal: AbortSignal) => this.#subagentPlaces.enter(treeOf(claim), claim.run.id, signal);
    const work = this.#execute(claim, enter).finally(() => this.#outsideSlots.delete(work));
    this.#outsideSlots.add(work);
  }

  /** Executes a subagent's run whose process died, or that no process has claimed, outside the slots. Never throws. */
  async adoptOrphan(owner: Owner, threadId: string): Promise<void> {
    if (this.#isClosing) return;
    try {
      const claim = await this.#options.stores.runs.claimNext(owner, threadId);
      if (claim) this.executeOutsideSlots(claim);
    } catch (err) {
      this.#options.logger.error({ err, thread_id: threadId }, "could not take a subagent's run");
    }
  }

  /** Counts a subagent that is about to start. Throws `limit_exceeded` when the runs of its tree have started too many. */
  countSubagent({ tenant, user }: Owner, root: string): void {
    this.#subagentPlaces.start({ tenant, user, root });
  }

  /**
   * The run waits for subagents, until the returned function is called. That resolves when the run may work again, or
   * `signal` aborts.
   */
  pause(runId: string, signal: AbortSignal): () => Promise<void> {
    return this.#subagentPlaces.pause(runId, signal);
  }

  /** Stops a run of this process: now, or after its current step. */
  stop(runId: string, mode: StopMode): void {
    const active = this.#active.get(runId);
    if (!active) return;
    if (mode === "interrupt") active.interrupt = true;
    else active.abort.abort(new AppError("cancelled", "The run was cancelled."));
  }

  /** Claims queued and abandoned runs while there are slots. Never throws. */
  async poll(): Promise<void> {
    this.#pollsAgain = true;
    this.#polling ??= this.#pollWhileAsked();
    return this.#polling;
  }

  /**
   * Takes no more runs and waits up to `graceMs` for those in progress. Then hands the rest over to another process, or,
   * if the store does not outlast this process, ends them with `shutting_down`.
   */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    await this.#idle(graceMs);
    this.#ended = new AppError("shutting_down", "The server is shutting down. What was done is kept.");
    for (const active of this.#active.values()) this.#end(active, this.#ended);
    await this.#idle(DRAIN_MS);
    for (const timer of this.#timers) clearInterval(timer);
    const stuck = [...this.#active.values()];
    this.#active.clear();
    await Promise.all(stuck.map((active) => this.#handOver(active)));
  }

  /** A slot is kept for runs that wait, so that new requests cannot overtake them. */
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

  /** `enter` resolves when the run may work, with what to call when it has ended. */
  async #execute(
    claim: Claim,
    enter: (signal: AbortSignal) => Promise<() => void> = async () => () => {},
  ): Promise<void> {
    const { lease, run } = claim;
    // A process that slept past its lease may be given its own run again: the first attempt then ends.
    this.#active.get(run.id)?.abort.abort(new AppError("lease_lost", "The run was taken over."));
    const abort = new AbortController();
    const handOver = new AbortController();
    const active = {
      lease,
      abort,
      handOver,
      renewedAt: performance.now(),
      interrupt: false,
      sender: omitUndefined({ api_key: claim.request.api_key, origin: claim.request.origin }),
    };
    this.#active.set(run.id, active);
    if (this.#ended) this.#end(active, this.#ended);
    // A stop may have been requested before the previous process died.
    if (run.attempt > 1) await this.#renewOne(active);
    const control = {
      signal: abort.signal,
      handedOver: handOver.signal,
      interruptRequested: () => active.interrupt,
    };
    const stopWatching = await this.#cancelWithKey(claim, abort);
    const leaveTree = this.#subagentPlaces.join(treeOf(claim));
    const leave = await enter(abort.signal);
    // Runs that come at once, as a run's subagents do, begin one after the other.
    await freeTurn(lease.owner.tenant);
    try {
      await this.#options.stores.inRun(() => drive(claim, this.#options, control));
    } catch (err) {
      abort.abort(err);
      if (!handOver.signal.aborted) logFailedRun(this.#options, claim, err);
    } finally {
      leave();
      leaveTree();
      stopWatching();
    }
    if (this.#active.get(run.id) !== active) return;
    this.#active.delete(run.id);
    if (handOver.signal.aborted) await this.#release(lease);
  }

  /** Cancels the run when the key that started it is revoked, also before it begins. Never throws. */
  async #cancelWithKey({ request }: Claim, abort: AbortController): Promise<() => void> {
    const { startingKeys } = this.#options;
    const { api_key } = request;
    if (!startingKeys || api_key === undefined) return () => {};
    const cancel = () =>
      abort.abort(new AppError("credentials_revoked", "The API key that started the run was revoked."));
    // While the store of keys fails, they count as good.
    if (await startingKeys.isRevoked(api_key).catch(() => false)) cancel();
    return startingKeys.watch(api_key, cancel);
  }

  /** What a run of this process was started with: its API key and its request. */
  senderOf(runId: string): Pick<RunRequest, "api_key" | "origin"> {
    return this.#active.get(runId)?.sender ?? {};
  }

  /** With free slots, only the thread's own next run can be waiting. */
  async #next({ owner, thread_id }: Lease): Promise<Claim | undefined> {
    try {
      return await this.#options.stores.runs.claimNext(owner, thread_id);
    } catch (err) {
      this.#options.logger.error({ err, thread_id }, "could not take the next run");
      return undefined;
    }
  }

  async #pollWhileAsked(): Promise<void> {
    while (this.#pollsAgain && !this.#isClosing) {
      this.#pollsAgain = false;
      try {
        while (await this.#claimBatch());
      } catch (err) {
        this.#options.logger.error({ err }, "could not look for abandoned runs");
      }
    }
    this.#slots.release();
    // In the same tick as the last check of `#pollsAgain`, so that no request is missed.
    this.#polling = undefined;
  }

  /** False when there is nothing more to claim, or no slot for it. */
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
    // After the machine slept, this process's own runs look abandoned: renew their leases first.
    if (Date.now() - this.#renewedAt > stores.runs.leaseMs / 2) await this.#renew();
    const claims = await stores.runs.claimAbandoned(count, except);
    for (const { run } of claims) {
      const { id: run_id, thread_id, attempt } = run;
      if (attempt > 1) logger.info({ run_id, thread_id, attempt }, "taking a run over");
    }
    return claims;
  }

  /** Never throws. Ends a run whose lease is lost, or could not be renewed before it expired. */
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
      // The run has ended meanwhile, and its lease with it.
      if (this.#active.get(lease.run_id) !== active) return undefined;
      if (hasCode(err, "lease_lost")) abort.abort(err);
      else if (performance.now() - active.renewedAt > leaseMs) abort.abort(storeUnreachable(leaseMs));
      return err;
    }
  }

  async #release(lease: Lease): Promise<void> {
    try {
      await this.#options.stores.runs.release(lease);
    } catch (err) {
      if (hasCode(err, "lease_lost")) return;
      const { run_id } = lease;
      this.#options.logger.error({ err, run_id }, "could not hand a run over; its lease will expire");
    }
  }

  /** Stops a run. Durable stores let another process continue it. */
  #end({ abort, handOver }: ActiveRun, reason: AppError): void {
    if (this.#options.stores.isDurable) handOver.abort(reason);
    abort.abort(reason);
  }

  /** For a run that does not end: if it ends later, it writes nothing. */
  async #handOver({ handOver, lease }: ActiveRun): Promise<void> {
    handOver.abort();
    if (this.#options.stores.isDurable) await this.#release(lease);
  }

  /** Waits until no run is executed, at most `withinMs`. */
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

function storeUnreachable(leaseMs: number): AppError {
  return new AppError("unavailable", `The store was unreachable for more than ${leaseMs / 1000} s.`);
}
