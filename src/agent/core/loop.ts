// The loop: calls the model, runs the tools that it calls, and repeats until the model is done.
//
// The thread's messages are the only state. If they contain open calls, the loop runs them. Otherwise, it calls the model.
// To resume a run after an approval or a crash, run the loop again. The loop stores nothing: its consumer stores each event
// before it requests the next one.

import { doneEvent } from "../../protocol/end.ts";
import { limitText } from "../../protocol/end-texts.ts";
import { type StreamEvent, warning } from "../../protocol/event.ts";
import { LimitDetails } from "../../protocol/limit-details.ts";
import { attributeErrors, compose } from "./compose.ts";
import { type LoopParts, runCustomLoop } from "./custom-loop.ts";
import { NOT_RUN, OUTCOME_UNKNOWN } from "./delivered-result.ts";
import { AppError, endsTheRun, hasCode, hookFailed, isCancellation, messageOf, RunLimit } from "./errors.ts";
import type { CallModel, CallTool, Hook, ToolRequest } from "./hook.ts";
import { isIncomplete } from "./incomplete-message.ts";
import {
  type AssistantMessage,
  hasCalledTools,
  type Message,
  type ToolCall,
  unanswered,
  unknownTo,
  withHitRatio,
} from "./message.ts";
import type { Completion, ModelRequest } from "./model.ts";
import { callModel, inOrder, instanceBlock, isEmpty, trackWords } from "./model-call.ts";
import { clearedInterrupts, OPEN_ENDED, settledInterrupts, staleAnswers } from "./open-interrupts.ts";
import { correction, MAX_CORRECTIONS, outputInvalid, readOutput } from "./output.ts";
import {
  appended,
  type MutableRun,
  mutableRun,
  type Outcome,
  outOfIterations,
  type RunInput,
  registerTool,
  reportFailure,
  type StandIn,
} from "./run.ts";
import { type Agent, offerCurrentTools, registerHookTools, shownTools } from "./runnable-agent.ts";
import { isStream, type MaybeStream, type Stream, toStream, withNext } from "./stream.ts";
import { failed, resultMessage, type Tool, type ToolResult } from "./tool.ts";
import { dispatch, executeTool } from "./tool-calls.ts";

/**
 * Drives `agent` until it stops. Yields a well-formed run: `run_start` first, every span closed, exactly one
 * `done` or `error` last. Returns the outcome. Throws only errors that come from the consumer or from
 * `standIn`.
 */
export async function* runAgent(agent: Agent, input: RunInput): Stream<Outcome> {
  const run = mutableRun(input, { interrupts: OPEN_ENDED, ...agent });
  yield opening(agent, input);
  for (const id of staleAnswers(run))
    yield warning("interrupt_closed", `The answer to \`${id}\` came too late: that interrupt is closed.`);
  let outcome: Outcome;
  try {
    yield* receive(run, input);
    run.signal.throwIfAborted();
    outcome = input.only ? APPENDED : yield* work(agent, run, input);
  } catch (error) {
    // Another process continues the run, so this one must not report its end.
    if (hasCode(run.signal.reason, "lease_lost")) throw error;
    outcome = outcomeOf(error, run.signal);
  }
  if ("error" in outcome) run.onFailure({ what: "run", error: outcome.error });
  const cut = outcome.status === "success" ? undefined : run.partial.message(whyCut(outcome));
  if (cut) yield withNext(appended(run, cut));
  if (outcome.status !== "interrupted" && input.only !== "appends")
    yield* answerOpenCalls(run, input, {
      reason: whyNotRun(outcome),
      isGivenUp: outcome.status === "cancelled",
    });
  if (!input.only) yield* afterAgent(agent, run, outcome);
  yield closing(run, outcome);
  return outcome;
}

const whyCut = ({ status }: Outcome) => (status === "cancelled" ? "stopped" : "failed");

const APPENDED: Outcome = { status: "success", stop_reason: "end_turn" };

async function* work(agent: Agent, run: MutableRun, input: RunInput): Stream<Outcome> {
  for (const tool of agent.tools) {
    if (tool.fault === undefined) registerTool(run, tool);
    else yield leftOut(tool, tool.fault);
  }
  for (const hook of agent.hooks) registerHookTools(hook, run);
  for (const hook of hooksWith(agent, "beforeAgent")) yield* inNameOf(hook, () => hook.beforeAgent(run));
  offerCurrentTools(agent, run);
  return agent.loop
    ? withOutput(agent, yield* runCustomLoop(agent.loop, partsOf(agent, run, input)))
    : yield* iterate(agent, run, input);
}

const leftOut = ({ name }: Tool, fault: string) =>
  warning("tool_left_out", `This run has no tool \`${name}\`: its parameters ${fault}.`);

async function* iterate(agent: Agent, run: MutableRun, input: RunInput): Stream<Outcome> {
  const callModel = modelOnion(agent, run);
  const callTool = toolOnion(agent, run, input);
  const limit = agent.maxIterations || Number.POSITIVE_INFINITY;
  const correct = corrections(agent);

  for (let iteration = 0; ; iteration++) {
    const calls = unanswered(run.messages);
    const said = run.messages.at(-1);
    // A resumed run may find every call answered and the model's final message already in the thread.
    if (iteration === 0 && calls.length === 0 && said?.role === "assistant" && !isIncomplete(said)) {
      const outcome = { status: "success", stop_reason: "end_turn", message: said } as const;
      if (!(yield* correct(outcome, run))) return withOutput(agent, outcome);
    }
    const { waiting, endsRun } = yield* dispatch(calls, callTool, { run, standIn: input.standIn });
    run.signal.throwIfAborted();
    if (endsRun) return withOutput(agent, { status: "success", stop_reason: "end_turn" });
    if (waiting.length > 0) return { status: "interrupted", stop_reason: "tool_use", calls: waiting };
    if (input.interruptRequested()) return { status: "interrupted", stop_reason: "interrupt", calls: [] };
    if (iteration === limit) return outOfIterations(limit);

    for (const message of await newMail(run, input)) yield appended(run, message);
    const { message, stop_reason } = yield* callModel(yield* prepare(agent, run), input.deltas);
    if (message.tool_calls) {
      // Its calls start immediately, so the message is stored together with the first start event.
      yield withNext(appended(run, message));
      continue;
    }
    // A final answer needs no separate write, because nothing depends on it before the next event.
    if (!isEmpty(message)) yield withNext(appended(run, message));

    const mail = await newMail(run, input);
    for (const each of mail) yield appended(run, each);
    const mustContinue = mail.length > 0 || (yield* runOnStop(agent, message, run));
    if (mustContinue) continue;
    const answer = isEmpty(message) ? ({ isEmpty: true } as const) : { message };
    const outcome = { status: "success", stop_reason, ...answer } as const;
    if (!(yield* correct(outcome, run))) return withOutput(agent, outcome);
  }
}

type Success = Extract<Outcome, { status: "success" }>;

/**
 * Returns a function to call with each final answer. It appends the answer's faults for the model to correct,
 * at most `MAX_CORRECTIONS` times, and returns true if it did.
 */
function corrections({ output: format }: Agent) {
  let made = 0;
  return async function* correct({ message, stop_reason }: Success, run: MutableRun): Stream<boolean> {
    if (!format || stop_reason === "refusal" || made === MAX_CORRECTIONS) return false;
    const read = readOutput(format, message?.content ?? "", stop_reason);
    if ("output" in read) return false;
    made++;
    yield appended(run, correction(format, read.faults));
    return true;
  };
}

/** Adds the output parsed from the final message to `outcome`. Throws `output_invalid`. */
function withOutput({ output: format }: Agent, outcome: Outcome): Outcome {
  if (!format || outcome.status !== "success") return outcome;
  const { message, stop_reason } = outcome;
  if (stop_reason === "refusal") throw outputInvalid(["The model refused to answer."]);
  const read = readOutput(format, message?.content ?? "", stop_reason);
  if ("faults" in read) throw outputInvalid(read.faults);
  return { ...outcome, output: read.output };
}

function partsOf(agent: Agent, run: MutableRun, input: RunInput): LoopParts {
  return {
    agent,
    run,
    input,
    callModel: modelOnion(agent, run),
    callTool: toolOnion(agent, run, input),
    prepare: () => prepare(agent, run),
    answer: (calls, reason) => answerCalls(calls, run, { reasonFor: () => reason, input, isGivenUp: false }),
  };
}

/**
 * Appends the run's input to the thread, once. First gives open calls their results, which the input may
 * contain.
 */
async function* receive(run: MutableRun, begin: RunInput): Stream<void> {
  const news = unknownTo(run.messages, begin.input);
  const results = resultsAmong(news, unanswered(run.messages));
  // The store already saved them with the run.
  for (const result of results) yield withNext(appended(run, result));
  if (news.length > 0) {
    const reason = "Interrupted: a new message came before this call was run.";
    if (endsWait(begin, news.length > results.length))
      yield* answerOpenCalls(run, begin, { reason, isGivenUp: false });
    for (const event of clearedInterrupts(run)) yield event;
  }
  for (const message of news) if (!results.includes(message)) yield withNext(appended(run, message));
}

/**
 * True if the run must give results to the open calls that the input does not answer. False if the input
 * restores messages or contains only results.
 */
const endsWait = ({ only, replaces }: RunInput, hasMessage: boolean) =>
  only === undefined || (only === "appends" && replaces === undefined && hasMessage);

/** Returns the first result of each of these calls. */
function resultsAmong(messages: readonly Message[], calls: readonly ToolCall[]): Message[] {
  return calls.flatMap(
    ({ id }) => messages.find((each) => each.role === "tool" && each.tool_call_id === id) ?? [],
  );
}

/** Returns messages that were sent during the run and are not in the thread yet. */
const newMail = async ({ messages }: MutableRun, { inbox }: RunInput) => unknownTo(messages, await inbox());

async function* runOnStop(agent: Agent, message: AssistantMessage, run: MutableRun): Stream<boolean> {
  for (const hook of hooksWith(agent, "onStop")) {
    const nudge = yield* inNameOf(hook, () => hook.onStop(message, run));
    if (!nudge) continue;
    yield appended(run, nudge);
    return true;
  }
  return false;
}

async function* prepare(agent: Agent, run: MutableRun): Stream<ModelRequest> {
  run.step++;
  offerCurrentTools(agent, run);
  const tools = shownTools(agent, run).map(({ name, description, parameters, ofProvider }) => ({
    name,
    description,
    parameters,
    ...(ofProvider ? { ofProvider } : {}),
  }));
  let request: ModelRequest = {
    model: agent.model,
    system: run.lineage ? [...agent.system, instanceBlock(run.lineage)] : agent.system,
    messages: [...run.messages],
    tools,
    settings: run.settings,
    ...(agent.output ? { output: agent.output.schema } : {}),
    toolCalled: hasCalledTools(run.messages),
    signal: run.signal,
    tenant: run.owner.tenant,
  };
  for (const hook of hooksWith(agent, "modifyRequest"))
    request = (yield* inNameOf(hook, () => hook.modifyRequest(request, run))) ?? request;
  return { ...request, system: inOrder(request.system) };
}

function modelOnion(agent: Agent, run: MutableRun): CallModel {
  const { core, layer } = attributeErrors<ModelRequest, Completion, MutableRun>((hook, error, { signal }) =>
    signal.aborted ? error : hookFailed(hook, error),
  );
  const layers = agent.hooks.map(
    (hook) => hook.wrapModelCall && layer(hook.name, hook.wrapModelCall.bind(hook)),
  );
  const ask = core((request, deltas) => callModel(request, run, deltas));
  return trackWords(compose<ModelRequest, Stream<Completion>, MutableRun>(layers, ask, run), run.partial);
}

function toolOnion(agent: Agent, run: MutableRun, { begun, standIn }: RunInput): CallTool {
  const { core, layer } = attributeErrors<ToolRequest, ToolResult, MutableRun>(
    (hook, error, { call, signal }) => {
      // The error becomes the call's result, so report the hook that threw it here, where its name is known.
      if (!signal.aborted && !endsTheRun(error))
        reportFailure(run, { what: "hook", error, hook, tool: call.name, call_id: call.id });
      return error;
    },
  );
  const layers = agent.hooks.map(
    (hook) => hook.wrapToolCall && layer(hook.name, hook.wrapToolCall.bind(hook)),
  );
  const execute = core((request) =>
    mayRepeat(request, begun)
      ? executeTool(request, run, agent.absence)
      : toStream(unknownOutcome(request, standIn)),
  );
  return compose<ToolRequest, Stream<ToolResult>, MutableRun>(layers, execute, run);
}

async function unknownOutcome({ call }: ToolRequest, standIn: StandIn | undefined): Promise<ToolResult> {
  return (await standIn?.(call, { isGivenUp: false })) ?? failed(OUTCOME_UNKNOWN);
}

/** True if a call may run. After a crash, a started call runs again only if repeating it does no harm. */
function mayRepeat({ call, tool }: ToolRequest, begun: ReadonlySet<string>): boolean {
  return !begun.has(call.id) || Boolean(tool?.annotations.readOnly || tool?.annotations.idempotent);
}

/** Gives every open call a result before the run ends. The result of a started call is "outcome unknown". */
async function* answerOpenCalls(
  run: MutableRun,
  input: RunInput,
  { reason, isGivenUp }: { reason: string; isGivenUp: boolean },
): Stream<void> {
  const open = unanswered(run.messages);
  if (open.length === 0) return;
  const hasStarted = ({ id }: ToolCall) => input.begun.has(id) || run.started.has(id);
  const reasonFor = (call: ToolCall) => (hasStarted(call) ? OUTCOME_UNKNOWN : reason);
  yield* answerCalls(open, run, { reasonFor, input, isGivenUp });
}

interface AnswerOptions {
  reasonFor(call: ToolCall): string;
  readonly input: RunInput;
  /** True to refuse results that arrive later. */
  readonly isGivenUp: boolean;
}

async function* answerCalls(
  calls: readonly ToolCall[],
  run: MutableRun,
  { reasonFor, input, isGivenUp }: AnswerOptions,
): Stream<void> {
  for (const call of calls) {
    const result = (await input.standIn?.(call, { isGivenUp })) ?? failed(reasonFor(call));
    yield appended(run, resultMessage(call, result));
  }
  const ids = calls.map(({ id }) => id);
  for (const event of settledInterrupts(run, ids)) yield event;
}

async function* afterAgent(agent: Agent, run: MutableRun, outcome: Outcome): Stream<void> {
  for (const hook of hooksWith(agent, "afterAgent").toReversed()) {
    try {
      await hook.afterAgent(outcome, run);
    } catch (error) {
      reportFailure(run, { what: "hook", error, hook: hook.name });
      yield warning("hook_failed", `Hook \`${hook.name}\` failed after the run: ${messageOf(error)}`);
    }
  }
}

type HookWith<Phase extends keyof Hook> = Hook & Required<Pick<Hook, Phase>>;

/** Returns the hooks that implement this phase, in order. */
function hooksWith<Phase extends keyof Hook>({ hooks }: Agent, phase: Phase): HookWith<Phase>[] {
  return hooks.filter((hook): hook is HookWith<Phase> => hook[phase] !== undefined);
}

/** Attributes errors of the hook to its name. */
async function* inNameOf<T>(hook: Hook, work: () => MaybeStream<T>): Stream<T> {
  try {
    const answer = work();
    return isStream(answer) ? yield* answer : await answer;
  } catch (error) {
    throw hookFailed(hook.name, error);
  }
}

/** Returns the outcome of a failure. An abort is a cancellation unless its reason is a server error. */
function outcomeOf(error: unknown, signal: AbortSignal): Outcome {
  const cause: unknown = signal.aborted ? signal.reason : error;
  if (isCancellation(signal))
    return {
      status: "cancelled",
      stop_reason: hasCode(cause, "credentials_revoked") ? "credentials_revoked" : "cancelled",
    };
  if (cause instanceof RunLimit) {
    const { reason, message } = cause;
    const given = LimitDetails.safeParse({ limit: reason, ...cause.details, message }).data;
    const details = given ?? { limit: reason, message };
    return {
      status: "error",
      stop_reason: reason,
      details: { ...details, message: limitText(reason, details) },
    };
  }
  return { status: "error", stop_reason: "error", error: AppError.from(cause) };
}

function whyNotRun(outcome: Outcome): string {
  return outcome.status === "cancelled" ? "Cancelled before it was run." : NOT_RUN;
}

function opening({ name, model }: Agent, { attempt, replaces }: RunInput): StreamEvent {
  if (attempt > 1) return { event: "run_resumed", data: { attempt } };
  const data = { agent: name, model: model.name, attempt, ...(replaces ? { replaces } : {}) };
  return { event: "run_start", data };
}

function closing(run: MutableRun, outcome: Outcome): StreamEvent {
  const usage = withHitRatio(run.usage);
  if ("error" in outcome) return { event: "error", data: { ...outcome.error.toInfo(), usage } };
  const { status, stop_reason } = outcome;
  const message_id = run.messages.findLast((message) => message.role === "assistant")?.id;
  const output = "output" in outcome && outcome.output ? { output: outcome.output } : {};
  const details = "details" in outcome && outcome.details ? { details: outcome.details } : {};
  const isEmpty = "isEmpty" in outcome && outcome.isEmpty;
  return doneEvent(
    { status, stop_reason, usage, ...(message_id ? { message_id } : {}), ...output, ...details },
    { isEmpty },
  );
}
