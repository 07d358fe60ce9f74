// A handle for a thread and its agent: send, follow, answer and stop. It keeps no state of the thread, so several
// handles can share a thread, even across processes.

import type { z } from "zod";
import { AppError, hasCode } from "../../agent/core/errors.ts";
import type { Message } from "../../agent/core/message.ts";
import type { Metadata, RunRecord, RunRequest, RunStatus, Thread } from "../../agent/core/records.ts";
import { storedEvent } from "../../agent/core/stored-json.ts";
import { isBranch } from "../../engine/runs/branches.ts";
import { getRun, keyOf, settledRun } from "../../engine/runs/control.ts";
import type { Runs } from "../../engine/runs/executor.ts";
import { currentPhase, followThread } from "../../engine/runs/follow.ts";
import { endRun, openOn, type RunCommand, resumeRun, startRun } from "../../engine/runs/start.ts";
import { serially } from "../../lib/async.ts";
import { jsonCopy } from "../../lib/json.ts";
import type { Logger } from "../../lib/logger.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Answer, Interrupt } from "../../protocol/interrupt.ts";
import type { Phase } from "../../protocol/phase.ts";
import { type Input, messagesOf, userMessagesOf } from "./input.ts";
import { type ResultServices, type RunResult, resultOf } from "./result.ts";

export interface AgentHandle<Output = unknown> {
  /** The id of the thread, for `runtime.get`. */
  readonly id: string;
  readonly agent: string;
  readonly owner: Owner;
  /**
   * The result of the newest run started through this handle. A failed run has a result too. Rejects with the reason if
   * the run was not accepted, and with `run_not_active` before the first run.
   */
  readonly result: Promise<RunResult<Output>>;
  /** Returns the newest run started through this handle, once it is accepted. */
  run(): Promise<RunRecord | undefined>;
  /** Returns the status of that run, or `idle` before the first run. */
  status(): Promise<RunStatus | "idle">;
  /** Returns the current phase of that run, such as a model call, or undefined if the run is not active. */
  phase(): Promise<Phase | undefined>;
  /** Yields the events of that run, except the first `after` events, and then live events until the run ends. */
  events(after?: number): AsyncGenerator<StreamEvent, void, void>;
  /**
   * Calls `listener` with every event of the thread, starting with the newest run. Returns a function that
   * unsubscribes. The listener is not awaited, and its errors are logged.
   */
  subscribe(listener: (event: StreamEvent) => void): () => void;
  /** Steers the active run, which reads the input before its next model call. If no run is active, starts one. */
  send(input: Input): Promise<void>;
  /** Returns the open interrupts of the thread. */
  interrupts(): Promise<Interrupt[]>;
  /** Resumes the interrupted run. Throws `interrupt_closed`, `invalid_request` or `run_not_active`. */
  answer(answers: readonly Answer[]): Promise<void>;
  /** Answers a client tool call with a text or an error. Throws the same errors as `answer`. */
  submitToolResult(callId: string, result: string | { readonly error: string }): Promise<void>;
  /** Asks the run to stop after its current step. */
  interrupt(): Promise<void>;
  /** Cancels the run, even while it waits for an answer. Resolves when the run has ended. */
  cancel(): Promise<void>;
  /** Returns a copy of the thread's messages. */
  history(): Promise<Message[]>;
  /** Returns the thread's state: todos, files and values set by hooks and loops. */
  state(): Promise<Record<string, unknown>>;
  metadata(): Promise<z.infer<typeof Metadata>>;
  /** Changes the title or metadata of the thread. Creates the thread if necessary. */
  describe(change: { title?: string; metadata?: z.infer<typeof Metadata> }): Promise<Thread>;
  /** Returns the thread that this thread works for, or undefined if this is not a subagent's thread. */
  parent(): Promise<AgentHandle | undefined>;
  /** Returns the threads of the subagents that work for this thread: the 100 most recently changed, newest first. */
  children(): Promise<AgentHandle[]>;
}

interface HandleServices extends ResultServices {
  readonly runs: Runs;
  readonly logger: Logger;
  /** Aborts when the runtime is closed. */
  readonly closing: AbortSignal;
  /** Called for each run that a handle starts. */
  onBegin(handle: AgentHandle, result: Promise<RunResult>): void;
  /** Returns a handle for an existing thread. */
  attach(owner: Owner, thread: Thread): Promise<AgentHandle>;
}

interface HandleStart {
  readonly id: string;
  readonly agent: string;
  readonly owner: Owner;
  /** Resolves when a run can start. */
  readonly prepared: Promise<unknown>;
  /** The newest run of an existing thread. */
  readonly run?: RunRecord;
}

interface RunStart
  extends Partial<Pick<RunCommand, "metadata" | "on_busy">>,
    Partial<Pick<RunRequest, "model" | "settings" | "output_schema" | "tools">> {
  readonly messages: readonly Message[];
}

/** A handle, and the function that starts a run on its thread. */
export interface StartableHandle {
  readonly handle: AgentHandle;
  begin(start: RunStart): void;
}

const CHILDREN = 100;

export function createHandle(services: HandleServices, start: HandleStart): StartableHandle {
  const { id, agent, owner, prepared, run } = start;
  const { runs, stores, logger, closing } = services;
  let newest: Promise<RunRecord> | undefined = run && Promise.resolve(run);
  let result: Promise<RunResult> | undefined;
  // Every use of `prepared` reports its failure.
  prepared.catch(() => {});

  const follow = (started: Promise<RunRecord>) => {
    newest = started;
    result = started.then((run) => resultOf(services, { owner, run }, closing));
    // A caller that never reads `result` must not cause an unhandled rejection.
    result.catch(() => {});
    services.onBegin(handle, result);
  };
  const begin = ({ messages, metadata = {}, on_busy = "reject", settings = {}, ...rest }: RunStart) =>
    follow(
      prepared.then(() =>
        startRun(runs, owner, {
          thread_id: id,
          agent,
          request: { input: [...messages], settings, ...rest },
          metadata,
          on_busy,
        }),
      ),
    );
  const stop = async (mode: "cancel" | "interrupt") => {
    const run = await newest;
    if (!run) return;
    try {
      const stopped = await endRun(runs, keyOf(owner, run), mode);
      if (mode === "cancel") await settledRun(runs, keyOf(owner, stopped), closing);
    } catch (error) {
      if (!hasCode(error, "run_not_active")) throw error;
    }
  };
  // Answers are processed in order, because each resumes the run that the previous answer started.
  const inTurn = serially();
  const resume = (answers: readonly Answer[]) =>
    inTurn(id, async () => {
      const run = await newest;
      if (!run) throw new AppError("run_not_active", `Thread \`${id}\` has no run that waits for an answer.`);
      await resultOf(services, { owner, run }, closing);
      const resumed = resumeRun(runs, owner, { thread_id: id, run_id: run.id, answers: [...answers] });
      await resumed;
      follow(resumed);
    });

  const handle: AgentHandle = {
    id,
    agent,
    owner,
    get result() {
      result ??= newest?.then((run) => resultOf(services, { owner, run }, closing));
      return (
        result ??
        Promise.reject(
          new AppError("run_not_active", `This handle has started no run on thread \`${id}\` yet.`),
        )
      );
    },
    run: async () => {
      const run = await newest;
      return run && getRun(runs, keyOf(owner, run));
    },
    status: async () => (await handle.run())?.status ?? "idle",
    async phase() {
      const run = await handle.run();
      return run && currentPhase(stores.events, keyOf(owner, run), run);
    },
    async *events(after = 0) {
      const run = await newest;
      if (!run) return;
      const leaving = new AbortController();
      try {
        const signal = AbortSignal.any([leaving.signal, closing]);
        for await (const batch of stores.events.read(keyOf(owner, run), after, signal))
          for (const entry of batch) yield storedEvent(entry);
      } finally {
        leaving.abort();
      }
    },
    subscribe(listener) {
      const leaving = new AbortController();
      const delivery = deliver(listener, AbortSignal.any([leaving.signal, closing]));
      delivery.catch((err: unknown) =>
        logger.error({ err, thread_id: id }, "a subscription ended with an error"),
      );
      return () => leaving.abort();
    },
    async send(input) {
      const active = await stores.runs.active(owner, id);
      for (const message of active ? userMessagesOf(input) : []) {
        if (await stores.runs.steer(owner, id, active?.id ?? "", message)) continue;
        begin({ messages: [message], on_busy: "enqueue" });
      }
      if (!active) begin({ messages: messagesOf(input), on_busy: "enqueue" });
      await newest;
    },
    interrupts: () => openOn(stores.threads, owner, id),
    answer: resume,
    submitToolResult: (call, said) =>
      resume([
        typeof said === "string"
          ? { id: `tool_${call}`, decision: "respond", message: said }
          : { id: `tool_${call}`, decision: "deny", message: said.error },
      ]),
    interrupt: () => stop("interrupt"),
    cancel: () => stop("cancel"),
    history: async () => jsonCopy(await stores.threads.messages(owner, id)),
    state: () => stores.threads.state(owner, id),
    metadata: async () => (await stores.threads.get(owner, id))?.metadata ?? {},
    async describe(change) {
      const changed = await stores.threads.update(owner, id, change);
      return changed ?? stores.threads.create(owner, { id, metadata: {}, ...change });
    },
    async parent() {
      const { parent } = (await stores.threads.get(owner, id)) ?? {};
      const thread = parent && (await stores.threads.get(owner, parent.thread_id));
      return thread && services.attach(owner, thread);
    },
    async children() {
      const { items } = await stores.threads.list(owner, { parent: id, limit: CHILDREN });
      const subagents = items.filter((thread) => !isBranch(thread));
      return Promise.all(subagents.map((thread) => services.attach(owner, thread)));
    },
  };

  async function deliver(listener: (event: StreamEvent) => void, signal: AbortSignal): Promise<void> {
    await prepared;
    const run = await newest?.catch(() => undefined);
    const from = run && { run, after: { seq: 0 } };
    for await (const at of followThread(stores, { owner, threadId: id, from }, signal))
      for await (const batch of stores.events.read(keyOf(owner, at.run), at.after, signal))
        for (const entry of batch) {
          if (signal.aborted) return;
          // An async listener is not awaited, so its rejection is caught here.
          (async () => listener(storedEvent(entry)))().catch((err: unknown) =>
            logger.error({ err, thread_id: id }, "a subscriber threw an error"),
          );
        }
  }

  return { handle, begin };
}
