// Runs a program's own loop instead of the standard one. Hooks, tool calls with their spans and results, interrupts, the limit of
// model calls and the end of the run work as usual.

import type { EventName } from "../../protocol/event.ts";
import type { Answer } from "../../protocol/interrupt.ts";
import { AppError, abortRun, messageOf } from "./errors.ts";
import type { CallModel, CallTool } from "./hook.ts";
import {
  assistantMessage,
  callsByUsers,
  type Message,
  NO_USAGE,
  type ToolCall,
  toolMessages,
  unanswered,
  unknownTo,
  userMessages,
} from "./message.ts";
import type { Completion, Model, ModelRequest } from "./model.ts";
import { callModel, isEmpty } from "./model-call.ts";
import { askFor, type Question } from "./open-interrupts.ts";
import { append, type MutableRun, type Outcome, outOfIterations, type RunInput, setState } from "./run.ts";
import type { Stream } from "./stream.ts";
import { done, failed, interrupted, type Run, type ToolResult } from "./tool.ts";
import { dispatch } from "./tool-calls.ts";

/**
 * Called once for each run, and again when the run resumes after an answer or a crash. It must derive its
 * next step from the thread, as the standard loop does. An error that it throws fails the run.
 */
export type AgentLoop = (internals: AgentInternals) => Stream<void>;

/** The operations of a custom loop. Pass streams on with `yield*`. */
export interface AgentInternals {
  /** The run as hooks and tools see it: its thread, state, owner and more. */
  readonly run: Run;
  /** Aborts when the run is cancelled. */
  readonly signal: AbortSignal;
  /**
   * Returns the user's next message, from the run's input or sent during the run. A resumed run starts with
   * the message that the earlier run was handling. Returns undefined when none is left. The loop must then
   * return, because the next message starts a new run.
   */
  receive(): Stream<Message | undefined>;
  /** Returns the model's tool calls without a result, oldest first. */
  openCalls(): ToolCall[];
  /**
   * Calls the agent's model through all hooks and appends its reply to the thread. First closes all open
   * calls without running them. Ends the run if a call waits for an answer, or if a stop after the current
   * step was requested. The run also ends if the agent has made its maximum number of model calls.
   */
  speak(change?: (request: ModelRequest) => ModelRequest): Stream<Completion>;
  /** Appends an assistant message without calling a model. Hooks do not see it. */
  say(text: string): Stream<void>;
  /**
   * Runs one call through all hooks and appends its result to the thread. Returns `interrupted` if the call
   * must wait.
   */
  callTool(call: ToolCall): Stream<ToolResult>;
  /**
   * Runs calls in parallel and returns their results in the same order. A call that the model did not make is
   * first appended to the thread as an assistant message. A call that already has a result since the user's
   * last message does not run again.
   */
  callTools(calls: readonly ToolCall[]): Stream<ToolResult[]>;
  /** Gives an open call a result that states `reason`, without running it. */
  refuse(call: ToolCall, reason: string): Stream<void>;
  /**
   * Returns a person's answer about an open call. Without an answer, the run ends here, and the loop is
   * called again when the answer arrives.
   */
  ask(question: Question): Stream<Answer>;
  append(...messages: readonly Message[]): Stream<void>;
  setState(key: string, value: unknown): Stream<void>;
}

/** The parts of the standard loop that a custom loop uses. */
export interface LoopParts {
  readonly agent: { readonly name: string; readonly maxIterations: number };
  readonly run: MutableRun;
  readonly input: RunInput;
  readonly callModel: CallModel;
  readonly callTool: CallTool;
  prepare(): Stream<ModelRequest>;
  /** Gives these calls a result and closes their interrupts. */
  answer(calls: readonly ToolCall[], reason: string): Stream<void>;
}

/** Thrown to end the run from anywhere in the loop. */
class StopLoop extends Error {}

/** The progress of one custom loop. */
interface LoopState {
  /** True if a call must wait for an answer. */
  waits: boolean;
  modelCalls: number;
  stop_reason: Completion["stop_reason"];
  /** Set when the run must end, even if the loop continues. */
  outcome?: Outcome;
}

/** The events that only the engine may yield. */
const RUN_EVENTS: ReadonlySet<EventName> = new Set(["run_start", "run_resumed", "done", "error"]);

export async function* runCustomLoop(loop: AgentLoop, parts: LoopParts): Stream<Outcome> {
  const { agent, run } = parts;
  const before = run.messages.length;
  const state: LoopState = { waits: false, modelCalls: 0, stop_reason: "end_turn" };
  try {
    for await (const event of loop(internalsOf(parts, state))) {
      if (!event.path && RUN_EVENTS.has(event.event))
        throw abortRun(
          `The loop of agent \`${agent.name}\` yielded \`${event.event}\`. Only the engine may yield events that begin or end a run.`,
        );
      yield event;
    }
  } catch (error) {
    if (!(error instanceof StopLoop)) throw named(error, agent);
  }
  run.signal.throwIfAborted();
  if (state.outcome) return state.outcome;
  if (state.waits) return interruptedBy("tool_use", run);
  const said = run.messages.slice(before).findLast((each) => each.role === "assistant");
  return { status: "success", stop_reason: state.stop_reason, ...(said ? { message: said } : {}) };
}

function internalsOf(parts: LoopParts, state: LoopState): AgentInternals {
  const { agent, run, input } = parts;
  const inbox = unread(run, input);
  const assertRunning = () => assertMayContinue(parts, state);
  const internals: AgentInternals = {
    run,
    signal: run.signal,
    openCalls: () => unanswered(run.messages),
    append: (...messages) => append(run, ...messages),
    setState: (key, value) => setState(run, key, value),
    refuse: (call, reason) => parts.answer([call], reason),

    async *receive() {
      assertRunning();
      if (inbox.length === 0) {
        const news = unknownTo(run.messages, await input.inbox());
        yield* append(run, ...news);
        inbox.push(...news);
      }
      return inbox.shift();
    },

    async *speak(change = (request) => request) {
      assertRunning();
      yield* parts.answer(unanswered(run.messages), "Not run: the agent continued without it.");
      if (++state.modelCalls > (agent.maxIterations || Number.POSITIVE_INFINITY))
        throw stopLoop(state, outOfIterations(agent.maxIterations));
      const completion = yield* parts.callModel(change(yield* parts.prepare()));
      if (!isEmpty(completion.message)) yield* append(run, completion.message);
      state.stop_reason = completion.stop_reason;
      return completion;
    },

    async *say(text) {
      assertRunning();
      const model = constantModel(agent.name, text);
      const request = { model, system: [], messages: [], tools: [], settings: {}, signal: run.signal };
      const { message } = yield* callModel(request, run);
      yield* append(run, message);
    },

    async *callTool(call) {
      const [result] = yield* internals.callTools([call]);
      return result ?? interrupted();
    },

    async *callTools(calls) {
      assertRunning();
      return yield* runCalls(calls, parts, state);
    },

    async *ask(question) {
      assertRunning();
      const answer = yield* askFor(question, run);
      if (!answer) throw stopLoop(state, interruptedBy("tool_use", run));
      return answer;
    },
  };
  return internals;
}

async function* runCalls(
  calls: readonly ToolCall[],
  { run, input, callTool }: LoopParts,
  state: LoopState,
): Stream<ToolResult[]> {
  const open = new Set(unanswered(run.messages).map(({ id }) => id));
  const made = calls.filter((call) => !open.has(call.id) && !resultOf(call, run));
  if (made.length > 0 && open.size > 0)
    throw abortRun(
      "The loop made its own tool call while the model's tool calls are open. Run or refuse them first.",
    );
  if (made.length > 0) yield* append(run, assistantMessage("", ...made));
  const now = calls.filter((call) => open.has(call.id) || made.includes(call));
  const { waiting, endsRun } = yield* dispatch(now, callTool, { run, standIn: input.standIn });
  run.signal.throwIfAborted();
  state.waits ||= waiting.length > 0;
  if (endsRun) throw stopLoop(state, { status: "success", stop_reason: "end_turn" });
  const later = new Set(waiting.map(({ id }) => id));
  return calls.map((call) => (later.has(call.id) ? interrupted() : (resultOf(call, run) ?? interrupted())));
}

/** Throws when the run must end. */
function assertMayContinue({ run, input }: LoopParts, state: LoopState): void {
  if (state.outcome) throw new StopLoop();
  run.signal.throwIfAborted();
  if (state.waits) throw stopLoop(state, interruptedBy("tool_use", run));
  if (input.interruptRequested()) throw stopLoop(state, interruptedBy("interrupt", run));
}

function stopLoop(state: LoopState, outcome: Outcome): StopLoop {
  state.outcome = outcome;
  return new StopLoop();
}

const interruptedBy = (stop_reason: "tool_use" | "interrupt", { messages }: Run): Outcome => ({
  status: "interrupted",
  stop_reason,
  calls: unanswered(messages),
});

/**
 * Returns the messages to handle. A run that resumes, or that a user started with tool calls only, begins at
 * the most recent message. Returns an empty list if the thread already contains an answer to that message.
 */
function unread({ messages }: MutableRun, input: RunInput): Message[] {
  const said = userMessages(input.input);
  const isCalling = said.length === 0 && callsByUsers(input.input).length > 0;
  if (!isCalling && unknownTo(input.messages, input.input).length > 0) return said;
  const isAnswered = messages.at(-1)?.role === "assistant" && unanswered(messages).length === 0;
  return isAnswered ? [] : userMessages(messages).slice(-1);
}

/**
 * Returns the result of a call. Searches only after the user's last message, because a model may reuse an id
 * in a later turn.
 */
function resultOf({ id }: ToolCall, { messages }: Run): ToolResult | undefined {
  const turn = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);
  const result = toolMessages(turn).findLast((each) => each.tool_call_id === id);
  if (!result) return undefined;
  return result.error === undefined ? done(result.content) : failed(result.error, result.content);
}

/** Returns a model that always answers with `content`. */
function constantModel(name: string, content: string): Model {
  return {
    name: `${name}:own`,
    isFree: true,
    async *stream() {
      yield { event: "on_chat_model_stream", data: { delta: content } };
      return { content, tool_calls: [], reasoning: [], stop_reason: "end_turn", usage: NO_USAGE };
    },
  };
}

function named(error: unknown, { name }: LoopParts["agent"]): AppError {
  if (error instanceof AppError) return error;
  return new AppError("run_aborted", `The loop of agent \`${name}\` failed: ${messageOf(error)}`, {
    cause: error,
  });
}
