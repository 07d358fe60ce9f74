// Accepts runs: new runs, runs that answer an interrupted run, and runs that cancel one.

import { AppError, hasCode } from "../../agent/core/errors.ts";
import { isIncomplete } from "../../agent/core/incomplete-message.ts";
import { estimateTokens, type Message, unanswered } from "../../agent/core/message.ts";
import { newRunId } from "../../agent/core/new-ids.ts";
import { inCallOrder, openInterrupts } from "../../agent/core/open-interrupts.ts";
import {
  type ClientTool,
  isSettled,
  type Lineage,
  type Origin,
  type RunRecord,
} from "../../agent/core/records.ts";
import type {
  NewRun,
  RunKey,
  StartResult,
  StopMode,
  Stores,
  ThreadStore,
  WhenBusy,
} from "../../agent/core/stores.ts";
import { withMargin } from "../../agent/core/usage-meter.ts";
import { checkClientTools } from "../../agent/tools/client.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { loadSchemaEngine } from "../../lib/untrusted-schema/index.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Answer, Interrupt } from "../../protocol/interrupt.ts";
import { admit } from "../quotas/holds.ts";
import { checkAnswers } from "./answers.ts";
import { assertNoBranch, type BranchServices, keepBranch } from "./branches.ts";
import { getRun, newestRun, stopRun } from "./control.ts";
import type { Runs } from "./executor.ts";
import { checkCalls, type GivenCall, messageWith } from "./given-calls.ts";
import type { Agents } from "./services.ts";
import { bytesWith, recount, storing } from "./thread-bytes.ts";

/** A run to start. */
export interface RunCommand extends Omit<NewRun, "id" | "agent"> {
  /** Defaults to the thread's own agent, then to the first configured one. */
  readonly agent?: string;
  readonly on_busy: "reject" | "enqueue" | "interrupt";
  /** Without input, continues the thread's last answer if it was cut off; otherwise, answers its last message. */
  readonly continues?: true;
  /** The calls that the run executes after reading its input and before calling its model. */
  readonly calls?: readonly GivenCall[];
  /** The id of the event stream that will show the run. Quotas admit either both the run and the stream, or neither. */
  readonly stream?: string | undefined;
}

/** Answers to an interrupted run. */
export interface ResumeCommand extends Pick<RunCommand, "thread_id" | "idempotency_key" | "stream"> {
  readonly run_id: string;
  /** Defaults to the metadata of the interrupted run. */
  readonly metadata?: RunCommand["metadata"];
  /** If empty, the run continues with the decisions made in the meantime. */
  readonly answers: Answer[];
  /**
   * The thread's open interrupts, if the caller has just read them. They are read again if another run has begun since
   * then.
   */
  readonly open?: readonly Interrupt[];
  readonly tools?: ClientTool[];
  readonly lineage?: Lineage;
  /** The id of the API key that sends the answers. */
  readonly api_key?: string | undefined;
  /** The id of the API key with which the interrupted run began, if the server answers without a request. */
  readonly begun_with?: string | undefined;
  /** The request that contains the answers. */
  readonly origin?: Origin | undefined;
  /** True if no one can answer the questions of the resumed run. */
  readonly unattended?: true | undefined;
}

const WHEN_BUSY = { reject: "reject", enqueue: "queue", interrupt: "front" } as const;

/**
 * Accepts a run and executes it once its thread is free and a process has a slot. If the idempotency key is known,
 * returns its run, even if a new run would be refused.
 */
export function startRun(runs: Runs, owner: Owner, command: RunCommand): Promise<RunRecord> {
  return startOnce(runs, owner, command, () => startNew(runs, owner, command));
}

/**
 * Continues an interrupted run by starting a new run of the same agent with the answers. Works like `startRun` in all
 * other respects. Throws `not_found`, `run_not_active`, `interrupt_closed`, `invalid_request` or `thread_busy`.
 */
export function resumeRun(runs: Runs, owner: Owner, resume: ResumeCommand): Promise<RunRecord> {
  const {
    run_id,
    thread_id,
    answers,
    tools,
    lineage,
    begun_with,
    api_key = begun_with,
    origin,
    unattended,
    metadata: own,
    open,
    ...rest
  } = resume;
  return startOnce(runs, owner, resume, async () => {
    const { status, agent, metadata } = await getRun(runs, { owner, thread_id, run_id });
    if (status !== "interrupted")
      throw new AppError(
        "run_not_active",
        `Run \`${run_id}\` is not waiting for an answer (status: ${status}).`,
      );
    // Questions that were read before another run began may have been answered since.
    const isCurrent = open && (await newestRun(runs.stores.runs, owner, thread_id))?.id === run_id;
    checkAnswers(answers, isCurrent ? open : await openOn(runs.stores.threads, owner, thread_id));
    const brought = omitUndefined({ tools, lineage, api_key, origin, unattended });
    const request = { input: [], settings: {}, answers, ...brought };
    const run = await startNew(runs, owner, {
      ...rest,
      thread_id,
      agent,
      metadata: own ?? metadata,
      request,
      on_busy: "reject",
      resumes: run_id,
    });
    // A subagent receives the same answers as its parent, so the answers are reported only once.
    if (!lineage) runs.onAnswered?.(owner, resume);
    return run;
  });
}

/**
 * Ends a run like `stopRun`. With `cancel`, also ends a run with open questions: starts and returns a new run that
 * answers them as cancelled.
 */
export async function endRun(runs: Runs, key: RunKey, mode: StopMode): Promise<RunRecord> {
  const run = await getRun(runs, key);
  const isWaiting = mode === "cancel" && run.status === "interrupted" && (await hasOpenQuestions(runs, key));
  return isWaiting ? cancelWaiting(runs, key.owner, run) : stopRun(runs, key, mode);
}

/** Returns true if the thread waits for answers to this run rather than to a later one. */
async function hasOpenQuestions({ stores }: Runs, { owner, thread_id, run_id }: RunKey): Promise<boolean> {
  const { threads, runs } = stores;
  if ((await threads.get(owner, thread_id))?.status !== "interrupted") return false;
  const newest = await newestRun(runs, owner, thread_id);
  if (newest?.id === run_id) return true;
  return (await openOn(threads, owner, thread_id)).some((open) => open.run_id === run_id);
}

/** Checks the output schema in a tenant's request. Throws `invalid_request`. */
async function checkOutputSchema(tenant: string, schema: Record<string, unknown>): Promise<void> {
  const { validate } = await loadSchemaEngine();
  try {
    if (schema.type !== "object") throw new SyntaxError('needs `"type": "object"`');
    await validate(schema, tenant);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new AppError("invalid_request", `output_schema: the schema ${error.message}.`);
  }
}

/** The new run costs no quota and calls no model. */
async function cancelWaiting(runs: Runs, owner: Owner, waiting: RunRecord): Promise<RunRecord> {
  assertOpen(runs);
  const { id: resumes, thread_id, agent, metadata } = waiting;
  const request: NewRun["request"] = { input: [], settings: {}, cancel: true };
  return runOf(
    await acceptRun(runs, owner, { id: newRunId(), thread_id, agent, metadata, resumes, request }, "reject"),
  );
}

/** A repeated request returns the run that the first one started. */
async function startOnce(
  { stores, quotas }: Runs,
  owner: Owner,
  { thread_id, idempotency_key: key, stream }: Pick<RunCommand, "thread_id" | "idempotency_key" | "stream">,
  start: () => Promise<RunRecord>,
): Promise<RunRecord> {
  try {
    return await start();
  } catch (error) {
    const known = key === undefined ? undefined : await stores.runs.known(owner, thread_id, key);
    if (!known) throw error;
    if (quotas && stream !== undefined) await admit(quotas, owner, { stream });
    return known;
  }
}

async function startNew(runs: Runs, owner: Owner, command: RunCommand): Promise<RunRecord> {
  const { agents, quotas, stores, threadBytes } = runs;
  const { agent: name, on_busy, stream, continues, calls, request: asked, ...rest } = command;
  const { thread_id, rewind_to } = command;
  const request = calls ? { ...asked, input: [...asked.input, messageWith(calls)] } : asked;
  assertNoBranch(thread_id);
  // A child that its parent waits for is part of the parent's run, which may still be ending.
  if (!isAwaited(request.lineage)) assertOpen(runs);
  const isCounted = rewind_to === undefined && request.input.length > 0;
  const found = name === undefined || isCounted ? await stores.threads.measured(owner, thread_id) : undefined;
  const place = { owner, thread_id };
  // A run that replaces a message first makes room by removing messages.
  const bytes = isCounted ? await bytesWith(found?.bytes ?? 0, place, request.input, threadBytes) : undefined;
  const agent = agents.find(name ?? found?.thread.agent);
  if (request.model !== undefined) agents.checkModel(agent, request.model);
  const { tools = [] } = request;
  checkNames(agents, tools);
  if (calls) await checkCalls(runs, { owner, thread_id, agent: agent.name, tools }, calls);
  const isRefusedBusy = rewind_to !== undefined || (request.tools && on_busy === "reject");
  if (isRefusedBusy) await assertFree(stores, owner, thread_id);
  if (rewind_to !== undefined)
    checkReplaced(await stores.threads.message(owner, thread_id, rewind_to), rewind_to);

  if (continues) await assertUnanswered(stores, owner, thread_id);

  const run = {
    ...rest,
    request: rewind_to === undefined ? request : { ...request, replaces: rewind_to },
    id: newRunId(),
    agent: agent.name,
  };
  const isThreadKnown = async () => (await stores.threads.get(owner, thread_id)) !== undefined;
  const expected = {
    ...{ agent: agent.name, threadId: thread_id, model: request.model },
    size: () => withMargin(estimateTokens(request.input)),
    isRewound: rewind_to !== undefined,
  };
  const wanted = { run: run.id, expected, thread: thread_id, isThreadKnown, stream };
  const hold = quotas && (await admit(quotas, owner, wanted));
  const start = async () => {
    // This check comes last because it is slow. A run that is refused for another reason does not need it.
    await checkClientTools(owner.tenant, tools);
    if (request.output_schema) await checkOutputSchema(owner.tenant, request.output_schema);
    return acceptWithBranch(runs, owner, run, WHEN_BUSY[on_busy]);
  };
  const counted = { threads: stores.threads, quotas };
  const added = { bytes, isNew: found === undefined };
  const result = await storing(counted, place, added, start).catch(async (error: unknown) => {
    await hold?.release();
    throw error;
  });
  await hold?.keepThread();
  if (result.outcome === "known") await Promise.all([hold?.releaseRun(), recount(counted, place)]);
  // If this fails, the run is still accepted, but quotas count it for only a minute.
  if (result.outcome === "queued") await countWaiting(runs, owner, result.run).catch(() => {});
  if (result.outcome === "queued" && on_busy === "interrupt") await cancelActive(runs, owner, result.run);
  return runOf(result);
}

/** Counts a waiting run, unless the run has already started and ended in another process. */
async function countWaiting({ stores, quotas }: Runs, owner: Owner, run: RunRecord): Promise<void> {
  if (!(await quotas?.keepWaiting(owner, run.id))) return;
  const now = await stores.runs.get(owner, run.thread_id, run.id);
  if (!now || isSettled(now.status)) await quotas?.release(owner, "runs", run.id);
}

export const runOf = (result: StartResult) => (result.outcome === "claimed" ? result.claim.run : result.run);

function assertOpen({ executor }: Runs): void {
  if (executor.isClosing)
    throw new AppError("shutting_down", "The server is shutting down. Try another replica.");
}

/** Throws `thread_busy`. If two runs start at the same time, the store decides which of them is accepted. */
async function assertFree({ runs }: Stores, owner: Owner, threadId: string): Promise<void> {
  const active = await runs.active(owner, threadId);
  if (!active) return;
  throw new AppError("thread_busy", `Thread \`${threadId}\` is busy with run \`${active.id}\`.`, {
    details: { run_id: active.id },
  });
}

/**
 * Throws `invalid_request`. If the thread gets a message in the meantime, the run either ends at once or answers that
 * message.
 */
async function assertUnanswered({ threads }: Stores, owner: Owner, threadId: string): Promise<void> {
  const last = await threads.message(owner, threadId);
  if (isIncomplete(last)) return;
  if (last?.role === "user" || last?.role === "tool") {
    const open = openInterrupts(new Map(Object.entries(await threads.state(owner, threadId))));
    if (open.length === 0) return;
    const message = `continue: thread \`${threadId}\` waits for ${open.length} answers. Answer them, or send a message.`;
    throw new AppError("invalid_request", message);
  }
  const message = `continue: the last message of thread \`${threadId}\` is an answer that was not cut off. Send a message instead.`;
  throw new AppError("invalid_request", message);
}

function checkNames(agents: Agents, tools: readonly ClientTool[]): void {
  const taken = tools.find(({ name }) => agents.isReserved(name));
  if (!taken) return;
  const message = `tools: \`${taken.name}\` is the name of one of the server's own tools. Choose another name.`;
  throw new AppError("invalid_request", message);
}

/** Like `acceptRun`, but first stores a branch with the messages that the run removes. */
export async function acceptWithBranch(
  runs: Runs,
  owner: Owner,
  run: NewRun,
  whenBusy: WhenBusy,
): Promise<StartResult> {
  const { thread_id, rewind_to: replaced, idempotency_key: key } = run;
  if (replaced === undefined) return acceptRun(runs, owner, run, whenBusy);
  const known = key === undefined ? undefined : await runs.stores.runs.known(owner, thread_id, key);
  if (known) return { outcome: "known", run: known };
  const services: BranchServices = { threads: runs.stores.threads, quotas: runs.quotas };
  const end_stays = run.request.appends === true && run.request.input.length > 0;
  const kept_to = await keepBranch(services, { owner, thread_id, replaced, run_id: run.id, end_stays });
  return acceptRun(runs, owner, { ...run, ...omitUndefined({ kept_to }) }, whenBusy);
}

/** Stores the run. Executes it at once if its thread is free and this process has a slot. */
async function acceptRun(
  { stores, executor }: Runs,
  owner: Owner,
  run: NewRun,
  whenBusy: WhenBusy,
): Promise<StartResult> {
  const isChild = isAwaited(run.request.lineage);
  const slot = isChild ? undefined : executor.takeSlot(owner.tenant);
  if (!isChild && !slot) return stores.runs.enqueue(owner, run, whenBusy);
  try {
    const result = await stores.runs.start(owner, run, whenBusy);
    if (result.outcome !== "claimed") return result;
    if (slot) slot.execute(result.claim);
    else executor.executeOutsideSlots(result.claim);
    return result;
  } finally {
    slot?.free();
  }
}

/** Cancels the thread's active run so the queued run can start. */
async function cancelActive(runs: Runs, owner: Owner, { thread_id, id }: RunRecord): Promise<void> {
  const active = await runs.stores.runs.active(owner, thread_id);
  if (!active || active.id === id) return;
  await stopRun(runs, { owner, thread_id, run_id: active.id }, "cancel").catch((error: unknown) => {
    if (!hasCode(error, "run_not_active")) throw error;
  });
}

/** Returns true if a run in progress waits for this one. */
const isAwaited = (lineage: Lineage | undefined) => lineage?.parent.background === false;

/** A run can only replace user messages. Throws `invalid_request`. */
function checkReplaced(message: Message | undefined, id: string): void {
  if (message?.role === "user") return;
  const what = message
    ? `message \`${id}\` is of role \`${message.role}\``
    : `there is no message \`${id}\` in this thread`;
  const right = "It must be the id of a user message in this thread; `GET /threads/:id/messages` lists them.";
  throw new AppError("invalid_request", `replaces: ${what}. ${right}`);
}

/** The parts of a thread that contain its open questions. */
export interface ReadableThread {
  state(): Promise<Readonly<Record<string, unknown>>>;
  messages(): Promise<readonly Message[]>;
}

/**
 * Returns the thread's open interrupts in the order of their calls. Reads the messages only if there may be open
 * interrupts.
 */
export async function openIn(thread: ReadableThread): Promise<Interrupt[]> {
  const open = openInterrupts(new Map(Object.entries(await thread.state())));
  if (open.length === 0) return open;
  // A failed run answers its calls but leaves their interrupts in the state.
  const calls = unanswered(await thread.messages()).map(({ id }) => id);
  return inCallOrder(
    open.filter(({ call_id }) => calls.includes(call_id)),
    calls,
  );
}

export const openOn = (threads: ThreadStore, owner: Owner, threadId: string): Promise<Interrupt[]> =>
  openIn({ state: () => threads.state(owner, threadId), messages: () => threads.messages(owner, threadId) });
