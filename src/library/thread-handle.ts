// What a handle does: each of its methods in terms of the runs and the stores.

import { AppError, hasCode } from "../core/errors.ts";
import type { StreamEvent } from "../core/event.ts";
import type { Owner } from "../core/ids.ts";
import type { Answer } from "../core/interrupt.ts";
import type { Message } from "../core/message.ts";
import type { RunRecord, Thread } from "../core/records.ts";
import { serially } from "../lib/async.ts";
import type { Logger } from "../lib/logger.ts";
import { currentPhase } from "../runs/follow.ts";
import type { StartRun } from "../runs/manager.ts";
import { openOn } from "../runs/start.ts";
import type { AgentHandle } from "./handle.ts";
import { messagesOf, userMessagesOf } from "./input.ts";
import { eventOf, type ResultServices, type RunResult, resultOf } from "./result.ts";

export interface HandleServices extends ResultServices {
  readonly logger: Logger;
  /** Aborted when the runtime is closed. */
  readonly closing: AbortSignal;
  /** Told of each run that is begun. */
  onBegin(handle: AgentHandle, result: Promise<RunResult>): void;
  /** A handle on a thread that is there. */
  attach(owner: Owner, thread: Thread): Promise<AgentHandle>;
}

export interface HandleStart {
  readonly id: string;
  readonly agent: string;
  readonly owner: Owner;
  /** Resolves when a run can be started. */
  readonly prepared: Promise<unknown>;
  /** The run that it is at. */
  readonly run?: RunRecord;
}

/** What a run is begun with. */
export type Beginning = Partial<Omit<StartRun, "thread_id" | "agent" | "messages">> & {
  readonly messages: readonly Message[];
};

/** A handle, and the way to begin a run on it. */
export interface Begun {
  readonly handle: AgentHandle;
  begin(beginning: Beginning): void;
}

const CHILDREN = 100;

export function createHandle(services: HandleServices, start: HandleStart): Begun {
  const { id, agent, owner, prepared, run } = start;
  const { runs, stores, logger, closing } = services;
  let newest: Promise<RunRecord> | undefined = run && Promise.resolve(run);
  let result: Promise<RunResult> | undefined;
  // Whoever begins something is told.
  prepared.catch(() => {});

  /** What comes of a run that is accepted, or will be. */
  const follow = (started: Promise<RunRecord>) => {
    newest = started;
    result = started.then((run) => resultOf(services, { owner, run }, closing));
    // Whoever does not ask for it is not told.
    result.catch(() => {});
    services.onBegin(handle, result);
  };
  const begin = ({ messages, ...more }: Beginning) =>
    follow(
      prepared.then(() =>
        runs.start(owner, {
          ...{ thread_id: id, agent, messages, settings: {}, metadata: {}, on_busy: "reject", ...more },
        }),
      ),
    );
  const stop = async (mode: "cancel" | "interrupt") => {
    const run = await newest;
    if (!run) return;
    try {
      const stopped = await runs.end(owner, id, run.id, mode);
      if (mode === "cancel") await runs.settled(owner, stopped, closing);
    } catch (error) {
      if (!hasCode(error, "run_not_active")) throw error;
    }
  };
  // Each answer goes on with the run that the one before has begun.
  const inTurn = serially();
  const resume = (answers: readonly Answer[]) =>
    inTurn(id, async () => {
      const run = await newest;
      if (!run) throw new AppError("run_not_active", `Nothing on thread \`${id}\` waits for an answer.`);
      await resultOf(services, { owner, run }, closing);
      const resumed = runs.resume(owner, { thread_id: id, run_id: run.id, answers: [...answers] });
      await resumed;
      follow(resumed);
    });

  const handle: AgentHandle = {
    ...{ id, agent, owner },
    get result() {
      result ??= newest?.then((run) => resultOf(services, { owner, run }, closing));
      return (
        result ?? Promise.reject(new AppError("run_not_active", `Nothing was asked on thread \`${id}\` yet.`))
      );
    },
    run: async () => {
      const run = await newest;
      return run && runs.get(owner, id, run.id);
    },
    status: async () => (await handle.run())?.status ?? "idle",
    async phase() {
      const run = await handle.run();
      return run && currentPhase(stores.events, { owner, thread_id: id, run_id: run.id }, run);
    },
    async *events(after = 0) {
      const run = await newest;
      if (!run) return;
      const left = new AbortController();
      try {
        for await (const batch of runs.events(owner, run, after, AbortSignal.any([left.signal, closing])))
          for (const entry of batch) yield eventOf(entry);
      } finally {
        left.abort();
      }
    },
    subscribe(listener) {
      const left = new AbortController();
      const told = tell(listener, AbortSignal.any([left.signal, closing]));
      told.catch((err: unknown) => logger.error({ err, thread_id: id }, "a subscriber is told no more"));
      return () => left.abort();
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
    history: () => stores.threads.messages(owner, id),
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
      return Promise.all(items.map((thread) => services.attach(owner, thread)));
    },
  };

  async function tell(listener: (event: StreamEvent) => void, signal: AbortSignal): Promise<void> {
    await prepared;
    const run = await newest?.catch(() => undefined);
    const from = run && { run, after: { seq: 0 } };
    const places = runs.follow({ owner, threadId: id, ...(from ? { from } : {}) }, signal);
    for await (const place of places)
      for await (const batch of runs.events(owner, place.run, place.after, signal))
        for (const entry of batch) {
          if (signal.aborted) return;
          // One that is `async` is not waited for, and fails later.
          (async () => listener(eventOf(entry)))().catch((err: unknown) =>
            logger.error({ err, thread_id: id }, "a subscriber failed"),
          );
        }
  }

  return { handle, begin };
}
