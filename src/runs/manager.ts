// Runs: the public face of the engine. Starts them, keeps them alive, stops them, lets anyone who may follow
// them do so. A run goes on whether or not somebody follows it.

import { AppError } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import type { UserMessage } from "../core/message.ts";
import { isSettled, type RunRecord } from "../core/records.ts";
import type { Cursor, LogEntry, Page, StopMode, Stores } from "../core/stores.ts";
import type { Logger } from "../lib/logger.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";
import type { Quotas } from "../quotas/index.ts";
import { tellRunning, wakeThreads } from "./deferred.ts";
import { announceEnd } from "./drive.ts";
import { Executor, type ExecutorOptions } from "./executor.ts";
import { type Following, follow, type Place } from "./follow.ts";
import { offeredTools } from "./prepare.ts";
import type { DriveServices } from "./services.ts";
import { createStarts, openOn, type ResumeRun, type StartRun, type Starts } from "./start.ts";
import { createSubagents } from "./subagents.ts";

export type { StartRun } from "./start.ts";

/** How often threads are looked for whose results have come while this process, or another, could not go on with them. */
const WAKE_MS = 5_000;

export class RunManager {
  readonly #stores: Stores;
  readonly #starts: Starts;
  readonly #executor: Executor;
  readonly #quotas: Quotas | undefined;
  readonly #logger: Logger;
  readonly #services: DriveServices;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ExecutorOptions) {
    this.#stores = options.stores;
    this.#quotas = options.quotas;
    const takeUp = (owner: Owner, threadId: string) => this.#executor.takeUp(owner, threadId);
    const subagents = createSubagents({ ...options, runs: this, takeUp });
    this.#services = { ...options, subagents };
    this.#executor = new Executor({ ...options, subagents });
    this.#starts = createStarts({
      ...{ stores: options.stores, agents: options.agents, quotas: options.quotas, executor: this.#executor },
      get: (owner, threadId, runId) => this.get(owner, threadId, runId),
      cancel: (owner, { thread_id, id }) => this.stop(owner, thread_id, id, "cancel"),
    });
    this.#logger = options.logger;
  }

  /** Takes up what earlier processes left. Call once, before the first start. */
  async open(): Promise<void> {
    await this.#executor.open();
    this.#timer = setInterval(() => void this.wake(), WAKE_MS).unref();
  }

  /** The names of the tools that this user's runs of an agent offer its model. Throws `invalid_request`. */
  toolsOf(owner: Owner, agent: string): Promise<string[]> {
    return offeredTools(owner, agent, this.#services);
  }

  /** False once it was told to close: nothing is started any more. */
  get isOpen(): boolean {
    return !this.#executor.isClosing;
  }

  /**
   * Accepts a run. It is executed from here on, or as soon as its thread is free and some process has room. A known
   * idempotency key returns the run that it started, also when a new one would be refused by now.
   */
  start(owner: Owner, start: StartRun): Promise<RunRecord> {
    return this.#starts.start(owner, start);
  }

  /**
   * Goes on with an interrupted run: a new one of the same agent, with the answers to what was asked. As `start`
   * otherwise. Throws `not_found`, `run_not_active`, `interrupt_closed`, `invalid_request`, `thread_busy`.
   */
  resume(owner: Owner, resume: ResumeRun): Promise<RunRecord> {
    return this.#starts.resume(owner, resume);
  }

  /** Throws `not_found`. */
  async get(owner: Owner, threadId: string, runId: string): Promise<RunRecord> {
    const run = await this.#stores.runs.get(owner, threadId, runId);
    if (!run) throw notFound("run", runId);
    return run;
  }

  async list(
    owner: Owner,
    threadId: string,
    page: { limit: number; cursor?: string },
  ): Promise<Page<RunRecord>> {
    return this.#stores.runs.list(owner, threadId, page);
  }

  /** The numbers of the first and last event that are still held. */
  bounds(owner: Owner, { id, thread_id }: RunRecord): Promise<{ first: number; last: number }> {
    return this.#stores.events.bounds({ owner, thread_id, run_id: id });
  }

  /** The number of the last event that a reader at `cursor` has seen of the log as it is now. */
  seen(owner: Owner, { id, thread_id }: RunRecord, cursor: Cursor): Promise<number> {
    return this.#stores.events.seen({ owner, thread_id, run_id: id }, cursor);
  }

  /** What the run said after the event `after`, then what it says, until it ends or `signal` aborts. */
  events(
    owner: Owner,
    run: RunRecord,
    after: number | Cursor,
    signal: AbortSignal,
  ): AsyncGenerator<readonly LogEntry[]> {
    return this.#stores.events.read({ owner, thread_id: run.thread_id, run_id: run.id }, after, signal);
  }

  /** Where to read on in a thread, run after run, until `signal` aborts. */
  follow(thread: Following, signal: AbortSignal): AsyncGenerator<Place> {
    return follow(this.#stores, thread, signal);
  }

  /** Ends a run now (`cancel`), or after its current step (`interrupt`). Throws `not_found`, `run_not_active`. */
  async stop(owner: Owner, threadId: string, runId: string, mode: StopMode): Promise<RunRecord> {
    const before = await this.get(owner, threadId, runId);
    if (isSettled(before.status))
      throw new AppError("run_not_active", `Run \`${runId}\` has ended (${before.status}).`);
    const { runs, bus } = this.#stores;
    const run = await runs.requestStop(owner, threadId, runId, mode);
    // One that waited has ended with that, and nobody drives it.
    if (before.status === "pending" && run?.status === "cancelled") {
      announceEnd(bus, owner, run, "cancelled");
      await this.#quotas?.release(owner, "runs", runId).catch(() => {});
    }
    this.#executor.stop(runId, mode);
    return run ?? before;
  }

  /**
   * As `stop`; and of a run that waits for answers, `cancel` answers all its open calls as cancelled, in a run of its
   * own, which is returned.
   */
  async end(owner: Owner, threadId: string, runId: string, mode: StopMode): Promise<RunRecord> {
    const run = await this.get(owner, threadId, runId);
    if (mode === "cancel" && run.status === "interrupted" && (await this.#isWaiting(owner, run)))
      return this.#starts.giveUp(owner, run);
    return this.stop(owner, threadId, runId, mode);
  }

  /** Whether the thread waits for what this run, and no later one, has asked. */
  async #isWaiting(owner: Owner, { id, thread_id }: RunRecord): Promise<boolean> {
    const { threads, runs } = this.#stores;
    if ((await threads.get(owner, thread_id))?.status !== "interrupted") return false;
    const [newest] = (await runs.list(owner, thread_id, { limit: 1 })).items;
    if (newest?.id === id) return true;
    return (await openOn(threads, owner, thread_id)).some(({ run_id }) => run_id === id);
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
    if (await this.#stores.runs.steer(owner, threadId, runId, message)) return;
    throw new AppError(
      "run_not_active",
      `Run \`${runId}\` is not running (${run.status}). Start a new run instead.`,
    );
  }

  /**
   * Accepts the result of a call, by the hash of its token, and continues its thread. False when no call takes the result;
   * otherwise it reaches the thread, in this process or another.
   */
  async deliver(tokenHash: string, reply: Record<string, unknown>): Promise<boolean> {
    const call = await this.#stores.deferredCalls.deliver(tokenHash, reply);
    if (!call) return false;
    await tellRunning(this.#stores, [call]);
    void this.wake();
    return true;
  }

  /** Goes on with threads for which results have come, or will not come any more. Never throws. */
  async wake(): Promise<void> {
    if (!this.isOpen) return;
    const start = { settings: {}, metadata: {}, on_busy: "reject" } as const;
    await wakeThreads({
      ...{ stores: this.#stores, logger: this.#logger },
      start: async (owner, thread_id, messages) => {
        const [last] = (await this.#stores.runs.list(owner, thread_id, { limit: 1 })).items;
        const resumes = messages.length === 0 && last?.status === "interrupted" ? last.id : undefined;
        return this.start(owner, { ...start, thread_id, messages, ...omitUndefined({ resumes }) });
      },
    });
  }

  /** As the executor does. */
  close(graceMs: number): Promise<void> {
    clearInterval(this.#timer);
    return this.#executor.close(graceMs);
  }
}

export function notFound(what: "thread" | "run", id: string): AppError {
  return new AppError("not_found", `There is no ${what} \`${id}\`.`);
}
