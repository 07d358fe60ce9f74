// A run's input, outcome and mutable state, and the functions that change it.

import { limitText } from "../../protocol/end-texts.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import type { Answer, InterruptPolicy } from "../../protocol/interrupt.ts";
import type { LimitDetails } from "../../protocol/limit-details.ts";
import { merge } from "../../protocol/patch.ts";
import type { AppError, LimitReason } from "./errors.ts";
import { type PartialMessage, trackPartial } from "./incomplete-message.ts";
import {
  type AssistantMessage,
  addUsage,
  type Message,
  NO_USAGE,
  type ToolCall,
  type Usage,
  type UserMessage,
} from "./message.ts";
import type { Completion, ModelRequest, StopReason } from "./model.ts";
import { newRunId } from "./new-ids.ts";
import type { Output } from "./output.ts";
import { type DeltaSink, type Stream, tap, withNext } from "./stream.ts";
import { createValues, type DoneResult, type Run, type RunIdentity, type Tool } from "./tool.ts";

/** How a run ended. Every tool call has a result, except for interrupted calls. */
export type Outcome =
  | {
      readonly status: "success";
      readonly stop_reason: StopReason;
      readonly message?: AssistantMessage;
      /** True if the last model call returned an empty reply. */
      readonly isEmpty?: true;
      /** Set for an agent with an output format. */
      readonly output?: Output;
    }
  | {
      readonly status: "interrupted";
      readonly stop_reason: "interrupt" | "tool_use";
      readonly calls: readonly ToolCall[];
    }
  | { readonly status: "cancelled"; readonly stop_reason: "cancelled" | "credentials_revoked" }
  | { readonly status: "error"; readonly stop_reason: LimitReason; readonly details?: LimitDetails }
  | { readonly status: "error"; readonly stop_reason: "error"; readonly error: AppError };

/** Returns the outcome of a run that has made `most` model calls, its maximum. */
export function outOfIterations(most: number): Outcome {
  const limit = { limit: "max_iterations", most, used: most, left: 0 };
  const message = limitText("max_iterations", limit);
  return { status: "error", stop_reason: "max_iterations", details: { message, ...limit } };
}

/** A failure for the server's log. Clients learn about it from events. */
export interface Failure {
  /**
   * `run`: the run fails. `model`: the fallback is called instead. `hook`: a hook failed, and the run
   * continues. `tool`: a tool's endpoint failed. `reply`: a provider's reply is unexpected but was accepted.
   * `resource`: a call failed because the machine lacks a resource.
   */
  readonly what: "run" | "model" | "hook" | "tool" | "reply" | "resource";
  readonly error: unknown;
  /** Default: the code of the error. */
  readonly code?: string;
  readonly hook?: string;
  readonly model?: string;
  readonly fallback?: string;
  readonly tool?: string;
  readonly call_id?: string;
}

/** The input of the loop for one run. The caller owns every part. */
export interface RunInput extends RunIdentity {
  /** The thread so far, without `input`. */
  readonly messages: readonly Message[];
  readonly state: ReadonlyMap<string, unknown>;
  /** The new messages. The loop skips messages that the thread already contains. */
  readonly input: readonly Message[];
  /** The id of the message that the run replaced. */
  readonly replaces?: string;
  /**
   * Set for a run that ends once its input is in the thread, without a model call. `restores`: the input was
   * already in the thread, and its open calls get results. `appends`: calls without a result stay open.
   */
  readonly only?: "appends" | "restores";
  /** The answers to the thread's interrupts. */
  readonly answers?: readonly Answer[];
  /** The usage of earlier attempts. */
  readonly usage: Usage;
  /** The ids of calls that an earlier attempt started and did not finish. */
  readonly begun: ReadonlySet<string>;
  /** The message that an earlier attempt was writing. */
  readonly partial?: PartialMessage;
  /** Undefined if no results are delivered later. */
  readonly standIn?: StandIn;
  /** Returns messages that were sent to the run while it is active. It may return the same messages again. */
  inbox(): Promise<readonly UserMessage[]>;
  /**
   * Takes deltas, in the same order as the yielded events. Must not throw. If undefined, the loop yields all
   * deltas.
   */
  readonly deltas?: DeltaSink;
  /** Called once for each failure, before its event. Must not throw. */
  onFailure?(failure: Failure): void;
  /**
   * Returns the cost of a model call in millionths of the currency, or undefined when the model has no price.
   */
  costOf?(model: string, usage: Usage): number | undefined;
  /** Awaited before each model call, including those of retries and hooks. Must not throw. */
  onModelRequest?(request: ModelRequest, call: ModelCallInfo): Promise<void>;
  /** Called with each reply, before its end event. Must return at once and not throw. */
  onModelReply?(reply: Completion): void;
}

/** A model call that is about to start. */
export interface ModelCallInfo {
  /** The id of the message that the call will produce. */
  readonly id: string;
  /** The thread's current messages. */
  readonly thread: readonly Message[];
}

/**
 * Returns the placeholder for a result that arrives later and that the run does not wait for, or undefined
 * for any other call. With `isGivenUp`, a later result is refused. Otherwise, it becomes a separate message.
 */
export type StandIn = (
  call: ToolCall,
  how: { readonly isGivenUp: boolean },
) => Promise<DoneResult | undefined>;

/** The loop's view of a run: the object that hooks see, with write access. */
export interface MutableRun extends Run {
  readonly messages: Message[];
  readonly state: Map<string, unknown>;
  readonly tools: Map<string, Tool>;
  /** The tools in `tools` that may appear and disappear. */
  currentTools: readonly Tool[];
  /** The names of tools that the agent excludes, which may not be registered. */
  readonly without: ReadonlySet<string>;
  /** The ids of calls that this attempt started and that have no result yet. */
  readonly started: Set<string>;
  /** The names of the tools in the most recent model request. */
  offeredTools: readonly string[];
  step: number;
  usage: Usage;
  /** The message that the model is currently writing. */
  readonly partial: PartialMessage;
  /**
   * `first` is the message id of the most recent model call, or of the call that it repeats. If `isRepeated`,
   * the next model call repeats it.
   */
  modelCall: { readonly first: string; readonly isRepeated: boolean };
  onFailure(failure: Failure): void;
  onModelRequest(request: ModelRequest, id: string): Promise<void> | undefined;
  onModelReply(reply: Completion): void;
  costOf(model: string, usage: Usage): number | undefined;
}

export interface RunningAgent {
  readonly name: string;
  readonly description?: string | undefined;
  readonly interrupts: InterruptPolicy;
  readonly without?: ReadonlySet<string>;
}

export function mutableRun(
  input: RunInput,
  { name, description, interrupts, without }: RunningAgent,
): MutableRun {
  const { id, threadId, owner, attempt, signal, settings, threadMetadata, backend, lineage, trace } = input;
  const { traceparent } = input;
  const messages = [...input.messages];
  return {
    id,
    threadId,
    owner,
    attempt,
    signal,
    settings,
    agent: name,
    description,
    threadMetadata,
    backend,
    lineage,
    trace,
    ...(traceparent ? { traceparent } : {}),
    interrupts,
    interruptRequested: () => input.interruptRequested(),
    onFailure: (failure) => input.onFailure?.(failure),
    costOf: (model, usage) => input.costOf?.(model, usage),
    onModelRequest: (request, id) => input.onModelRequest?.(request, { id, thread: messages }),
    onModelReply: (reply) => input.onModelReply?.(reply),
    messages,
    state: new Map(input.state),
    tools: new Map(),
    currentTools: [],
    values: createValues(),
    without: without ?? new Set(),
    started: new Set(),
    offeredTools: [],
    answers: input.answers ?? [],
    usage: input.usage,
    partial: input.partial ?? trackPartial(),
    modelCall: { first: "", isRepeated: false },
    step: 0,
  };
}

/** Returns a run on an empty thread that is never stored. Use it to call hooks outside runs. */
export function unrecordedRun(
  place: Pick<RunIdentity, "owner" | "threadId" | "signal">,
  agent: RunningAgent,
): MutableRun {
  const input = {
    ...place,
    id: newRunId(),
    attempt: 1,
    settings: {},
    usage: NO_USAGE,
    messages: [],
    state: new Map(),
    input: [],
    begun: new Set<string>(),
    inbox: async () => [],
    interruptRequested: () => false,
  };
  return mutableRun(input, agent);
}

/** Returns the user's own thread, which this run works for directly or as a subagent. */
export const rootOf = ({ threadId, lineage }: Run) => lineage?.root ?? threadId;

/**
 * Offers a tool to the model for this run, unless the agent's configuration excludes it. Throws if the name
 * is already registered, so no tool can shadow another.
 */
export function registerTool(run: Run, tool: Tool): void {
  if (live(run).without.has(tool.name)) return;
  if (run.tools.has(tool.name)) throw new Error(`Tool \`${tool.name}\` is registered already.`);
  live(run).tools.set(tool.name, tool);
}

/**
 * Returns the run as a tool sees it, with the signal of the tool's call. Usage that is added to the returned
 * run is also added to `run`.
 */
export function duringCall(run: MutableRun, signal: AbortSignal): Run {
  return {
    ...run,
    signal,
    get usage() {
      return run.usage;
    },
    set usage(usage) {
      run.usage = usage;
    },
  };
}

/** Adds other usage, such as a subagent's, to this run. */
export function countUsage(run: Run, usage: Usage): void {
  live(run).usage = addUsage(run.usage, usage);
}

/** Reports a failure that does not end the run. Call it once, where the failure is handled. */
export function reportFailure(run: Run, failure: Failure): void {
  live(run).onFailure(failure);
}

/** Marks the run's next model call as a repetition of the failed one. */
export function repeatModelCall(run: Run): void {
  live(run).modelCall = { ...live(run).modelCall, isRepeated: true };
}

/** Adds messages to the thread. The consumer of the run stores them with their events. */
export async function* append(run: Run, ...messages: readonly Message[]): Stream<void> {
  for (const message of messages) yield appended(run, message);
}

/** Adds a message to the thread and returns the event that stores it. Yield that event next. */
export function appended(run: Run, message: Message): StreamEvent {
  live(run).messages.push(message);
  return { event: "on_message", data: { message } };
}

/** Replaces one of the thread's values. */
export async function* setState(run: Run, key: string, value: unknown): Stream<void> {
  live(run).state.set(key, value);
  yield { event: "on_state", data: { key, value } } satisfies StreamEvent;
}

/** Merges `patch` into one of the thread's values, key by key. `null` deletes a key. */
export async function* patchState(run: Run, key: string, patch: Record<string, unknown>): Stream<void> {
  yield patched(run, key, patch);
}

/** Like `patchState`, but returns the event that stores the change. Yield that event next. */
export function patched(run: Run, key: string, patch: Record<string, unknown>): StreamEvent {
  live(run).state.set(key, merge(run.state.get(key), patch));
  return { event: "on_state", data: { key, patch } };
}

/** Stores `change` together with the result of a tool call. It must be the last step of that call. */
export const withResult = (change: Stream<void>): Stream<void> => tap(change, withNext);

// The cast is safe: only `mutableRun` and `duringCall` create runs, and only this file writes to them.
const live = (run: Run) => run as MutableRun;
