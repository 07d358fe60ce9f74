// Accepting runs: new ones, those that go on with an interrupted one, and those that give one up.

import { AppError, hasCode } from "../core/errors.ts";
import { newRunId, type Owner } from "../core/ids.ts";
import type { Answer, Interrupt, InterruptKind } from "../core/interrupt.ts";
import { openInterrupts } from "../core/interrupts.ts";
import type { Message } from "../core/message.ts";
import { unanswered } from "../core/messages.ts";
import type { ModelSettings } from "../core/model.ts";
import type { ClientTool, Lineage, RunRecord } from "../core/records.ts";
import type { NewRun, StartResult, Stores, ThreadStore, WhenBusy } from "../core/stores.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";
import { admitted, holdThread } from "../quotas/holds.ts";
import type { Quotas } from "../quotas/index.ts";
import { createClientTools } from "../tools/client.ts";
import type { Executor } from "./executor.ts";
import type { AgentSource } from "./services.ts";

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

export interface Starts {
  start(owner: Owner, start: StartRun): Promise<RunRecord>;
  resume(owner: Owner, resume: ResumeRun): Promise<RunRecord>;
  /** Answers all open calls of a run that waits as cancelled, in a run of its own, which is returned. */
  giveUp(owner: Owner, waiting: RunRecord): Promise<RunRecord>;
}

interface StartServices {
  readonly stores: Stores;
  readonly agents: AgentSource;
  readonly quotas: Quotas | undefined;
  readonly executor: Executor;
  /** Throws `not_found`. */
  get(owner: Owner, threadId: string, runId: string): Promise<RunRecord>;
  /** Throws `run_not_active`. */
  cancel(owner: Owner, run: RunRecord): Promise<unknown>;
}

export function createStarts(services: StartServices): Starts {
  const { stores, agents, quotas, executor } = services;
  return {
    start: (owner, start) => orKnown(owner, start, () => begin(owner, start)),

    resume: (owner, { run_id, ...resume }) =>
      orKnown(owner, resume, async () => {
        const { thread_id, answers } = resume;
        const { status, agent, metadata } = await services.get(owner, thread_id, run_id);
        if (status !== "interrupted")
          throw new AppError("run_not_active", `Run \`${run_id}\` waits for nothing (${status}).`);
        checkAnswers(answers, await openOn(stores.threads, owner, thread_id));
        const start = { messages: [], settings: {}, on_busy: "reject", resumes: run_id } as const;
        return begin(owner, { ...start, ...resume, agent, metadata });
      }),

    async giveUp(owner, { id: resumes, thread_id, agent, metadata }) {
      assertOpen();
      const request: NewRun["request"] = { input: [], settings: {}, cancel: true };
      const news = { id: newRunId(), thread_id, agent, metadata, resumes, request };
      // It takes no room of anybody's, and asks no model.
      const result = await accept(owner, news, "reject");
      return result.outcome === "claimed" ? result.claim.run : result.run;
    },
  };

  async function begin(owner: Owner, start: StartRun): Promise<RunRecord> {
    // A child is part of what its parent does: it ends, or is handed over, with it.
    if (!isAwaited(start)) assertOpen();
    const { thread_id, replaces } = start;
    const agent = agents.find(start.agent ?? (await stores.threads.get(owner, thread_id))?.agent);
    if (start.model !== undefined) agents.checkModel(agent, start.model);
    await checkTools(start.tools ?? []);
    if (replaces !== undefined) checkReplaced(await stores.threads.messages(owner, thread_id), replaces);
    const run = newRun(start, agent.name);
    const accepting = () => accept(owner, run, WHEN_BUSY[start.on_busy]);
    const result = await (quotas
      ? admit(quotas, { owner, run, threads: stores.threads }, accepting)
      : accepting());
    if (result.outcome === "claimed") return result.claim.run;
    if (result.outcome === "queued" && start.on_busy === "interrupt") await makeWay(owner, result.run);
    return result.run;
  }

  function assertOpen(): void {
    if (executor.isClosing)
      throw new AppError("shutting_down", "The server is shutting down. Try another replica.");
  }

  /** A request that is repeated finds the run that it started. */
  async function orKnown(
    owner: Owner,
    { thread_id, idempotency_key: key }: Pick<StartRun, "thread_id" | "idempotency_key">,
    start: () => Promise<RunRecord>,
  ): Promise<RunRecord> {
    try {
      return await start();
    } catch (error) {
      const known = key === undefined ? undefined : await stores.runs.known(owner, thread_id, key);
      if (!known) throw error;
      return known;
    }
  }

  async function checkTools(tools: readonly ClientTool[]): Promise<void> {
    await createClientTools(tools);
    const taken = tools.find(({ name }) => agents.isReserved(name));
    if (taken)
      throw new AppError(
        "invalid_request",
        `tools: \`${taken.name}\` is a tool of the server itself. Choose another name.`,
      );
  }

  async function accept(owner: Owner, run: NewRun, whenBusy: WhenBusy): Promise<StartResult> {
    if (isAwaited(run.request)) {
      const result = await stores.runs.start(owner, run, whenBusy);
      if (result.outcome === "claimed") executor.executeAside(result.claim);
      return result;
    }
    const slot = executor.takeSlot();
    if (!slot) return stores.runs.enqueue(owner, run, whenBusy);
    try {
      const result = await stores.runs.start(owner, run, whenBusy);
      if (result.outcome === "claimed") slot.execute(result.claim);
      return result;
    } finally {
      slot.free();
    }
  }

  /** Cancels what runs on the thread, so that the run that waits in front can begin. */
  async function makeWay(owner: Owner, waiting: RunRecord): Promise<void> {
    const running = await stores.runs.active(owner, waiting.thread_id);
    if (!running || running.id === waiting.id) return;
    await services.cancel(owner, running).catch((error: unknown) => {
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
    request: { input: [...messages], settings, ...omitUndefined({ model, answers, tools, lineage }) },
    metadata,
    ...omitUndefined({ idempotency_key, resumes, rewind_to }),
  };
}

// Whether one more run may be started, as far as quotas go. From then on it counts, until it has ended.

/** Throws `limit_exceeded`, and what `start` throws. A run that is not made does not count. */
export async function admit<R extends StartResult>(
  quotas: Quotas,
  { owner, run, threads }: { owner: Owner; run: NewRun; threads: ThreadStore },
  start: () => Promise<R>,
): Promise<R> {
  await quotas.assertFunds(owner);
  const result = await admitted(quotas, { owner, thing: "runs", id: run.id }, async () => {
    const exists = async () => (await threads.get(owner, run.thread_id)) !== undefined;
    await holdThread(quotas, owner, { id: run.thread_id, exists });
    return start();
  });
  // Where that fails, its time will be over.
  if (result.outcome === "known") await quotas.release(owner, "runs", run.id).catch(() => {});
  return result;
}

// Which message a run may take the place of.

/** Throws `invalid_request`, with what would be right. */
export function checkReplaced(messages: readonly Message[], id: string): void {
  const message = messages.find((each) => each.id === id);
  if (message?.role === "user") return;
  const what = message
    ? `message \`${id}\` is of role \`${message.role}\``
    : `there is no message \`${id}\` in this thread`;
  const right = "It must be a user's message of this thread, as `GET /threads/:id/messages` lists them.";
  throw new AppError("invalid_request", `replaces: ${what}. ${right}`);
}

// Going on with an interrupted run: what is open on its thread, and which answers fit.
/** What may be said to what. */
const DECISIONS: Record<InterruptKind, readonly Answer["decision"][]> = {
  approval: ["approve", "deny", "edit", "respond"],
  question: ["respond", "deny"],
  tool: ["respond", "deny"],
};

/** What a thread waits for, in the order in which it was asked. */
export async function openOn(threads: ThreadStore, owner: Owner, threadId: string): Promise<Interrupt[]> {
  const open = openInterrupts(new Map(Object.entries(await threads.state(owner, threadId))));
  if (open.length === 0) return open;
  // A run that failed has answered its calls, and says nothing of what was asked about them.
  const calls = unanswered(await threads.messages(owner, threadId)).map(({ id }) => id);
  return open.filter(({ call_id }) => calls.includes(call_id));
}

/** Throws `interrupt_closed` for one that is not open, `invalid_request` for an answer that does not fit. */
export function checkAnswers(answers: readonly Answer[], open: readonly Interrupt[]): void {
  if (new Set(answers.map(({ id }) => id)).size < answers.length)
    throw new AppError("invalid_request", "answers: each interrupt has one answer.");
  for (const answer of answers) {
    const interrupt = open.find(({ id }) => id === answer.id);
    if (!interrupt)
      throw new AppError(
        "interrupt_closed",
        `There is nothing open under \`${answer.id}\`: it was answered, or is over.`,
      );
    const fault = faultOf(answer, interrupt);
    if (fault) throw new AppError("invalid_request", `answers: \`${answer.id}\` ${fault}.`);
  }
}

function faultOf({ decision, args, remember, message }: Answer, interrupt: Interrupt): string | undefined {
  const { kind, one_of_options, options = [] } = interrupt;
  const fits = DECISIONS[kind];
  if (!fits.includes(decision)) return `takes ${fits.join(", ")}; not ${decision}`;
  if ((decision === "edit") !== (args !== undefined)) return "takes `args` with `edit`, and only with it";
  const canBeKept = kind === "approval" && (decision === "approve" || decision === "deny");
  if (remember !== undefined && !canBeKept)
    return "takes `remember` with the `approve` or `deny` of an approval only";
  if (decision === "respond" && one_of_options && !options.includes(message ?? ""))
    return `takes one of its options as \`message\`: ${options.map((option) => `\`${option}\``).join(", ")}`;
  return undefined;
}
