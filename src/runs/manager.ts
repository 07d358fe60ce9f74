// Runs: the public face of the engine. Starts them, keeps them alive, stops them, lets anyone who may follow
// them do so. A run goes on whether or not somebody follows it.

import { type ClientTool, createClientTools } from "../core/client-tools.ts";
import { AppError, hasCode } from "../core/errors.ts";
import { newRunId, type Owner } from "../core/ids.ts";
import type { Answer } from "../core/interrupt.ts";
import type { Message, UserMessage } from "../core/message.ts";
import type { ModelSettings } from "../core/model.ts";
import type { Quotas } from "../core/quotas.ts";
import {
  isSettled,
  type LogEntry,
  type NewRun,
  type Page,
  type RunRecord,
  type StartResult,
  type StopMode,
  type Stores,
  type WhenBusy,
} from "../core/stores.ts";
import type { Lineage } from "../core/subagents.ts";
import { given } from "../lib/given.ts";
import { admit } from "./admission.ts";
import { announceEnd } from "./announce.ts";
import type { AgentSource } from "./drive.ts";
import { Executor, type ExecutorOptions, type Logger } from "./executor.ts";
import { type Following, follow, type Place } from "./following.ts";
import { checkReplaced } from "./replacing.ts";
import { checkAnswers, openOn } from "./resume.ts";
import { createSubagents } from "./subagents.ts";
import { wakeThreads } from "./waking.ts";

/** How often threads are looked for whose results have come while this process, or another, could not go on with them. */
const WAKE_MS = 5_000;

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
  /** To interrupts of the thread. */
  readonly answers?: Answer[];
  /** That the client carries out. */
  readonly tools?: ClientTool[];
  /** A user's message of the thread: it and all after it are forgotten. Only with `reject`. */
  readonly replaces?: string;
  /** The interrupted run that it goes on with. */
  readonly resumes?: string;
  /** Of a run that works for another one. */
  readonly lineage?: Lineage;
}

export interface ResumeRun extends Pick<StartRun, "thread_id" | "idempotency_key" | "tools" | "lineage"> {
  readonly run_id: string;
  /** None: it goes on with what was decided meanwhile. */
  readonly answers: Answer[];
}

export class RunManager {
  readonly #stores: Stores;
  readonly #agents: AgentSource;
  readonly #executor: Executor;
  readonly #quotas: Quotas | undefined;
  readonly #logger: Logger;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ExecutorOptions) {
    this.#stores = options.stores;
    this.#agents = options.agents;
    this.#quotas = options.quotas;
    const takeUp = (owner: Owner, threadId: string) => this.#executor.takeUp(owner, threadId);
    const subagents = createSubagents({ ...options, runs: this, takeUp });
    this.#executor = new Executor({ ...options, subagents });
    this.#logger = options.logger;
  }

  /** Takes up what earlier processes left. Call once, before the first start. */
  async open(): Promise<void> {
    await this.#executor.open();
    this.#timer = setInterval(() => void this.wake(), WAKE_MS).unref();
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
    return this.#orKnown(owner, start, () => this.#start(owner, start));
  }

  /**
   * Goes on with an interrupted run: a new one of the same agent, with the answers to what was asked. As `start`
   * otherwise. Throws `not_found`, `run_not_active`, `interrupt_closed`, `invalid_request`, `thread_busy`.
   */
  resume(owner: Owner, { run_id, ...resume }: ResumeRun): Promise<RunRecord> {
    const { thread_id, answers } = resume;
    return this.#orKnown(owner, resume, async () => {
      const { status, agent, metadata } = await this.get(owner, thread_id, run_id);
      if (status !== "interrupted")
        throw new AppError("run_not_active", `Run \`${run_id}\` waits for nothing (${status}).`);
      checkAnswers(answers, await openOn(this.#stores.threads, owner, thread_id));
      const start = { messages: [], settings: {}, on_busy: "reject", resumes: run_id } as const;
      return this.#start(owner, { ...start, ...resume, agent, metadata });
    });
  }

  async #start(owner: Owner, start: StartRun): Promise<RunRecord> {
    // A child is part of what its parent does: it ends, or is handed over, with it.
    if (!isAwaited(start)) this.#assertOpen();
    const agent = this.#agents.find(
      start.agent ?? (await this.#stores.threads.get(owner, start.thread_id))?.agent,
    );
    if (start.model !== undefined) this.#agents.checkModel(agent, start.model);
    await this.#checkTools(start.tools ?? []);
    const { thread_id, replaces } = start;
    if (replaces !== undefined)
      checkReplaced(await this.#stores.threads.messages(owner, thread_id), replaces);
    const result = await this.#admit(owner, newRun(start, agent.name), WHEN_BUSY[start.on_busy]);
    if (result.outcome === "claimed") return result.claim.run;
    if (result.outcome === "queued" && start.on_busy === "interrupt") await this.#makeWay(owner, result.run);
    return result.run;
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

  /** What the run said after the event number `after`, then what it says, until it ends or `signal` aborts. */
  events(
    owner: Owner,
    run: RunRecord,
    after: number,
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
    const isWaiting = run.status === "interrupted" && mode === "cancel";
    const thread = isWaiting ? await this.#stores.threads.get(owner, threadId) : undefined;
    if (thread?.status !== "interrupted") return this.stop(owner, threadId, runId, mode);
    this.#assertOpen();
    const request: NewRun["request"] = { input: [], settings: {}, cancel: true };
    const { agent, metadata } = run;
    const news = { id: newRunId(), thread_id: threadId, agent, metadata, resumes: runId, request };
    // It takes no room of anybody's, and asks no model.
    const result = await this.#accept(owner, news, "reject");
    return result.outcome === "claimed" ? result.claim.run : result.run;
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

  /** Goes on with threads for which results have come, or will not come any more. Never throws. */
  async wake(): Promise<void> {
    if (!this.isOpen) return;
    const start = { messages: [], settings: {}, metadata: {}, on_busy: "reject" } as const;
    const resume = async (owner: Owner, thread_id: string) => {
      const [last] = (await this.#stores.runs.list(owner, thread_id, { limit: 1 })).items;
      const resumes = last?.status === "interrupted" ? last.id : undefined;
      return this.start(owner, { thread_id, ...start, ...given({ resumes }) });
    };
    await wakeThreads({ stores: this.#stores, logger: this.#logger, resume });
  }

  /** As the executor does. */
  close(graceMs: number): Promise<void> {
    clearInterval(this.#timer);
    return this.#executor.close(graceMs);
  }

  #assertOpen(): void {
    if (!this.isOpen)
      throw new AppError("shutting_down", "The server is shutting down. Try another replica.");
  }

  /** A request that is repeated finds the run that it started. */
  async #orKnown(
    owner: Owner,
    { thread_id, idempotency_key: key }: Pick<StartRun, "thread_id" | "idempotency_key">,
    start: () => Promise<RunRecord>,
  ): Promise<RunRecord> {
    try {
      return await start();
    } catch (error) {
      const known = key === undefined ? undefined : await this.#stores.runs.known(owner, thread_id, key);
      if (!known) throw error;
      return known;
    }
  }

  async #checkTools(tools: readonly ClientTool[]): Promise<void> {
    await createClientTools(tools);
    const taken = tools.find(({ name }) => this.#agents.isReserved(name));
    if (taken)
      throw new AppError(
        "invalid_request",
        `tools: \`${taken.name}\` is a tool of the server itself. Choose another name.`,
      );
  }

  /** Throws `limit_exceeded` when the owner's quotas leave no room for it. */
  #admit(owner: Owner, run: NewRun, whenBusy: WhenBusy): Promise<StartResult> {
    const accept = () => this.#accept(owner, run, whenBusy);
    return this.#quotas
      ? admit(this.#quotas, { owner, run, threads: this.#stores.threads }, accept)
      : accept();
  }

  async #accept(owner: Owner, run: NewRun, whenBusy: WhenBusy): Promise<StartResult> {
    if (isAwaited(run.request)) {
      const result = await this.#stores.runs.start(owner, run, whenBusy);
      if (result.outcome === "claimed") this.#executor.executeAside(result.claim);
      return result;
    }
    const slot = this.#executor.takeSlot();
    if (!slot) return this.#stores.runs.enqueue(owner, run, whenBusy);
    try {
      const result = await this.#stores.runs.start(owner, run, whenBusy);
      if (result.outcome === "claimed") slot.execute(result.claim);
      return result;
    } finally {
      slot.free();
    }
  }

  /** Cancels what runs on the thread, so that the run that waits in front can begin. */
  async #makeWay(owner: Owner, waiting: RunRecord): Promise<void> {
    const running = await this.#stores.runs.active(owner, waiting.thread_id);
    if (!running || running.id === waiting.id) return;
    await this.stop(owner, waiting.thread_id, running.id, "cancel").catch((error: unknown) => {
      if (!hasCode(error, "run_not_active")) throw error;
    });
  }
}

/** Whether a run that is executed waits for it. */
const isAwaited = ({ lineage }: { lineage?: Lineage | undefined }) => lineage?.parent.background === false;

const WHEN_BUSY = { reject: "reject", enqueue: "queue", interrupt: "front" } as const;

function newRun(start: StartRun, agent: string): NewRun {
  const { thread_id, messages, model, settings, metadata, answers, tools, lineage } = start;
  const { idempotency_key, resumes, replaces: rewind_to } = start;
  return {
    id: newRunId(),
    thread_id,
    agent,
    request: { input: [...messages], settings, ...given({ model, answers, tools, lineage }) },
    metadata,
    ...given({ idempotency_key, resumes, rewind_to }),
  };
}

export function notFound(what: "thread" | "run", id: string): AppError {
  return new AppError("not_found", `There is no ${what} \`${id}\`.`);
}
