// Runs: the public face of the engine. Starts them, keeps them alive, stops them, lets anyone who may follow
// them do so. A run goes on whether or not somebody follows it.

import { AppError, type ErrorCode } from "../core/errors.ts";
import { newRunId, type Owner } from "../core/ids.ts";
import type { Message, UserMessage } from "../core/message.ts";
import type { ModelSettings } from "../core/model.ts";
import {
  type Claim,
  isSettled,
  type Lease,
  type LogEntry,
  type NewRun,
  type Page,
  type RunRecord,
  type StopMode,
} from "../core/stores.ts";
import { announceEnd } from "./announce.ts";
import { type DriveServices, drive } from "./drive.ts";

/** A third of the stores' lease. */
const RENEW_MS = 3_000;
/** How often this process looks for runs that nobody executes. */
const RECOVER_MS = 5_000;
/** How long a stopped run may take to write its end. */
const LAST_WORDS_MS = 3_000;

export interface StartRun {
  readonly thread_id: string;
  /** Default: the thread's own agent, else the configuration's first. */
  readonly agent?: string;
  readonly messages: readonly Message[];
  readonly model?: string;
  readonly settings: ModelSettings;
  readonly metadata: NewRun["metadata"];
  readonly on_busy: "reject" | "enqueue" | "interrupt";
  readonly idempotency_key?: string;
}

export interface RunManagerOptions extends DriveServices {
  /** Runs that this process executes at once; past it a start throws `unavailable`. */
  readonly maxActive: number;
  readonly logger: Logger;
}

export interface Logger {
  info(details: object, message: string): void;
  error(details: object, message: string): void;
}

interface ActiveRun {
  readonly lease: Lease;
  readonly abort: AbortController;
  readonly finished: Promise<void>;
  interrupt: boolean;
}

export class RunManager {
  readonly #options: RunManagerOptions;
  readonly #active = new Map<string, ActiveRun>();
  #timers: NodeJS.Timeout[] = [];
  #closing = false;

  constructor(options: RunManagerOptions) {
    this.#options = options;
  }

  /** Takes up what an earlier process left, and begins to keep leases. Call once, before the first start. */
  async open(): Promise<void> {
    await this.#recover();
    this.#timers = [
      setInterval(() => this.#renew(), RENEW_MS),
      setInterval(() => this.#recover(), RECOVER_MS),
    ];
    for (const timer of this.#timers) timer.unref();
  }

  get activeCount(): number {
    return this.#active.size;
  }

  /** Accepts a run; it is executed from here on. A known idempotency key returns the run that it started. */
  async start(owner: Owner, start: StartRun): Promise<RunRecord> {
    this.#refuseWhenFull();
    const { stores, agents } = this.#options;
    const agent = agents.find(start.agent ?? (await stores.threads.get(owner, start.thread_id))?.agent);
    if (start.model !== undefined) agents.checkModel(agent, start.model);
    const whenBusy = ({ reject: "reject", enqueue: "queue", interrupt: "front" } as const)[start.on_busy];
    const result = await stores.runs.start(owner, newRun(start, agent.name), whenBusy);
    if (result.outcome === "claimed") return this.#execute(result.claim).run;
    if (result.outcome === "queued" && start.on_busy === "interrupt") await this.#makeWay(owner, result.run);
    return result.run;
  }

  /** Throws `not_found`. */
  async get(owner: Owner, threadId: string, runId: string): Promise<RunRecord> {
    const run = await this.#options.stores.runs.get(owner, threadId, runId);
    if (!run) throw notFound("run", runId);
    return run;
  }

  async list(
    owner: Owner,
    threadId: string,
    page: { limit: number; cursor?: string },
  ): Promise<Page<RunRecord>> {
    return this.#options.stores.runs.list(owner, threadId, page);
  }

  /** The numbers of the first and last event that are still held. */
  bounds(owner: Owner, { id, thread_id }: RunRecord): Promise<{ first: number; last: number }> {
    return this.#options.stores.events.bounds({ owner, thread_id, run_id: id });
  }

  /** What the run said after the event number `after`, then what it says, until it ends or `signal` aborts. */
  events(
    owner: Owner,
    run: RunRecord,
    after: number,
    signal: AbortSignal,
  ): AsyncGenerator<readonly LogEntry[]> {
    return this.#options.stores.events.read(
      { owner, thread_id: run.thread_id, run_id: run.id },
      after,
      signal,
    );
  }

  /** Ends a run now (`cancel`), or after its current step (`interrupt`). Throws `not_found`, `run_not_active`. */
  async stop(owner: Owner, threadId: string, runId: string, mode: StopMode): Promise<RunRecord> {
    const before = await this.get(owner, threadId, runId);
    if (isSettled(before.status))
      throw new AppError("run_not_active", `Run \`${runId}\` has ended (${before.status}).`);
    const { runs, bus } = this.#options.stores;
    const run = await runs.requestStop(owner, threadId, runId, mode);
    // One that waited has ended with that, and nobody drives it.
    if (before.status === "pending" && run?.status === "cancelled") announceEnd(bus, owner, run, "cancelled");
    this.#stopHere(runId, mode);
    return run ?? before;
  }

  /** Resolves with the run once it is settled, or as it is when `signal` aborts. */
  async settled(owner: Owner, run: RunRecord, signal: AbortSignal): Promise<RunRecord> {
    const { last } = await this.bounds(owner, run);
    for await (const _ of this.events(owner, run, last, signal));
    return this.get(owner, run.thread_id, run.id);
  }

  /** Leaves a message for a running run. Throws `not_found`, `run_not_active`, `queue_full`. */
  async steer(owner: Owner, threadId: string, runId: string, message: UserMessage): Promise<void> {
    const run = await this.get(owner, threadId, runId);
    if (await this.#options.stores.runs.steer(owner, threadId, runId, message)) return;
    throw new AppError(
      "run_not_active",
      `Run \`${runId}\` is not running (${run.status}). Start a new run instead.`,
    );
  }

  /** Takes no more runs, waits for the running ones up to `graceMs`, then ends them with `shutting_down`. */
  async close(graceMs: number): Promise<void> {
    this.#closing = true;
    for (const timer of this.#timers) clearInterval(timer);
    await this.#idle(graceMs);
    for (const { abort } of this.#active.values())
      abort.abort(new AppError("shutting_down", "The server is shutting down. What was done is kept."));
    await this.#idle(LAST_WORDS_MS);
  }

  #execute(claim: Claim): Claim {
    const { lease, run } = claim;
    const abort = new AbortController();
    const control = {
      signal: abort.signal,
      interruptRequested: () => this.#active.get(run.id)?.interrupt ?? false,
    };
    // A process that slept past its lease may be given its own run again: the first attempt then ends.
    this.#active.get(run.id)?.abort.abort(new AppError("lease_lost", "The run was taken over."));
    const finished = drive(claim, this.#options, control)
      .catch((err: unknown) => {
        abort.abort(err);
        this.#options.logger.error({ err, run_id: run.id, thread_id: run.thread_id }, "run failed");
      })
      .finally(() => this.#active.get(run.id)?.lease === lease && this.#active.delete(run.id))
      .then(() => this.#claimNext(lease));
    this.#active.set(run.id, { lease, abort, finished, interrupt: false });
    return claim;
  }

  async #claimNext({ owner, thread_id }: Lease): Promise<void> {
    if (this.#closing) return;
    try {
      const claim = await this.#options.stores.runs.claimNext(owner, thread_id);
      if (claim) this.#execute(claim);
    } catch (err) {
      this.#options.logger.error({ err, thread_id }, "could not take the thread's next run");
    }
  }

  async #recover(): Promise<void> {
    try {
      // A process that has slept past its leases still has its runs: they are not abandoned.
      await this.#renew();
      for (const claim of await this.#options.stores.runs.claimAbandoned()) {
        const { id: run_id, thread_id, attempt } = claim.run;
        this.#options.logger.info({ run_id, thread_id, attempt }, "taking up a run that nobody executes");
        this.#execute(claim);
      }
    } catch (err) {
      this.#options.logger.error({ err }, "could not look for abandoned runs");
    }
  }

  /** Never throws: a lease that is lost ends its run, one that cannot be renewed now may be so later. */
  async #renew(): Promise<void> {
    await Promise.all([...this.#active.values()].map((active) => this.#renewOne(active)));
  }

  async #renewOne({ lease, abort }: ActiveRun): Promise<void> {
    try {
      const { stop } = await this.#options.stores.runs.renew(lease);
      if (stop) this.#stopHere(lease.run_id, stop);
    } catch (err) {
      if (hasCode(err, "lease_lost")) abort.abort(err);
      else this.#options.logger.error({ err, run_id: lease.run_id }, "could not renew the lease");
    }
  }

  #stopHere(runId: string, mode: StopMode): void {
    const active = this.#active.get(runId);
    if (!active) return;
    if (mode === "interrupt") active.interrupt = true;
    else active.abort.abort(new AppError("cancelled", "The run was cancelled."));
  }

  /** Cancels what runs on the thread, so that the run that waits in front can begin. */
  async #makeWay(owner: Owner, waiting: RunRecord): Promise<void> {
    const running = await this.#options.stores.runs.active(owner, waiting.thread_id);
    if (!running || running.id === waiting.id) return;
    await this.stop(owner, waiting.thread_id, running.id, "cancel").catch((error: unknown) => {
      if (!hasCode(error, "run_not_active")) throw error;
    });
  }

  #refuseWhenFull(): void {
    if (this.#closing)
      throw new AppError("shutting_down", "The server is shutting down. Try another replica.");
    if (this.#active.size >= this.#options.maxActive)
      throw new AppError(
        "unavailable",
        `All ${this.#options.maxActive} run slots of this server are taken.`,
        {
          details: { retry_after_ms: 1000 },
        },
      );
  }

  async #idle(withinMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, withinMs);
    });
    await Promise.race([Promise.all([...this.#active.values()].map(({ finished }) => finished)), deadline]);
    clearTimeout(timer);
  }
}

function newRun(start: StartRun, agent: string): NewRun {
  const { thread_id, messages, model, settings, metadata, idempotency_key } = start;
  return {
    id: newRunId(),
    thread_id,
    agent,
    request: { input: [...messages], settings, ...(model === undefined ? {} : { model }) },
    metadata,
    ...(idempotency_key === undefined ? {} : { idempotency_key }),
  };
}

export function notFound(what: "thread" | "run", id: string): AppError {
  return new AppError("not_found", `There is no ${what} \`${id}\`.`);
}

const hasCode = (error: unknown, code: ErrorCode) => error instanceof AppError && error.code === code;
