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

/** How a run ended. In each case every tool call has a result, except the interrupted ones. */
export type Outcome =
  | {
      readonly status: "success";
      readonly stop_reason: StopReason;
      readonly message?: AssistantMessage;
      /** The model was asked last and said nothing. */
      readonly isEmpty?: true;
      /** Of an agent that has an output format. */
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

/** How a run ends that has asked its model `most` times. */
export function outOfIterations(most: number): Outcome {
  const limit = { limit: "max_iterations", most, used: most, left: 0 };
  const message = limitText("max_iterations", limit);
  return { status: "error", stop_reason: "max_iterations", details: { message, ...limit } };
}

/** A failure, for the server's log. Clients learn of it by events. */
export interface Failure {
  /**
   * `run`: the run fails with it. `model`: the fallback is asked instead. `hook`: a hook failed, and the run continues.
   * `tool`: the endpoint of a tool failed. `reply`: a provider's reply is odd, and was read nevertheless. `resource`: a call
   * failed because the machine has run out of something.
   */
  readonly what: "run" | "model" | "hook" | "tool" | "reply" | "resource";
  readonly error: unknown;
  /** Default: the error's own. */
  readonly code?: string;
  readonly hook?: string;
  readonly model?: string;
  readonly fallback?: string;
  readonly tool?: string;
  readonly call_id?: string;
}

/** A run before it begins: what the loop is given. The caller owns every part. */
export interface RunInput extends RunIdentity {
  /** The thread so far, without `input`. */
  readonly messages: readonly Message[];
  readonly state: ReadonlyMap<string, unknown>;
  /** New messages. Those that the thread already holds are skipped. */
  readonly input: readonly Message[];
  /** The id of the message that the run has replaced. */
  readonly replaces?: string;
  /**
   * The run ends once its input is in the thread, and asks no model. `restores`: the thread held it before, and calls in it get
   * a result. `appends`: calls without a result stay open.
   */
  readonly only?: "appends" | "restores";
  /** Answers to interrupts of the thread. */
  readonly answers?: readonly Answer[];
  /** Of earlier attempts. */
  readonly usage: Usage;
  /** Calls that an earlier attempt started and did not finish. */
  readonly begun: ReadonlySet<string>;
  /** The message that an earlier attempt was writing. */
  readonly partial?: PartialMessage;
  /** Absent: no call's result is delivered later. */
  readonly standIn?: StandIn;
  /** Messages sent to the run while it works. May return the same ones again. */
  inbox(): Promise<readonly UserMessage[]>;
  /** Takes deltas in their place among the events that are yielded. Must not throw. Absent: all are yielded. */
  readonly deltas?: DeltaSink;
  /** Called once for each failure, before its event. Must not throw. */
  onFailure?(failure: Failure): void;
  /** What a model call costs, in millionths; undefined when its model has no price. */
  costOf?(model: string, usage: Usage): number | undefined;
  /** Awaited before each model call, those of retries and hooks included. Must not throw. */
  onModelRequest?(request: ModelRequest, call: ModelCallInfo): Promise<void>;
  /** Called with the answer of each of them, before its end event. Must return at once and not throw. */
  onModelReply?(reply: Completion): void;
}

/** A model call that begins. */
export interface ModelCallInfo {
  /** Of the message that it answers with. */
  readonly id: string;
  /** The thread's messages as they are now. */
  readonly thread: readonly Message[];
}

/**
 * The thread's stand-in for a result that is delivered later, when the run does not wait for it; undefined for any other
 * call. `isGivenUp`: a later result is refused; otherwise it becomes a message of its own.
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
  /** The tools of `tools` that may come and go. */
  currentTools: readonly Tool[];
  /** Names that no tool is registered under. */
  readonly without: ReadonlySet<string>;
  /** Calls that this attempt has started and that have no result yet. */
  readonly started: Set<string>;
  /** The names of the tools that the model was shown last. */
  offeredTools: readonly string[];
  step: number;
  usage: Usage;
  /** The message that is being written. */
  readonly partial: PartialMessage;
  /** The id of the message that the last model call was to answer with, or of the call that it repeated; whether the next one repeats it. */
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

/** A run on an empty thread that is never stored: for calling hooks outside of a run. */
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

/** The user's own thread, for which this run works directly or as a subagent. */
export const rootOf = ({ threadId, lineage }: Run) => lineage?.root ?? threadId;

/**
 * Offers a tool to the model for this run, unless the agent's configuration leaves it out. Throws for a name that is
 * taken, so that no tool can shadow another.
 */
export function registerTool(run: Run, tool: Tool): void {
  if (live(run).without.has(tool.name)) return;
  if (run.tools.has(tool.name)) throw new Error(`Tool \`${tool.name}\` is registered already.`);
  live(run).tools.set(tool.name, tool);
}

/** The run as a tool sees it: with the signal of its call. Usage counted there counts for the run. */
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

/** Counts usage by others, such as a subagent, as this run's own. */
export function countUsage(run: Run, usage: Usage): void {
  live(run).usage = addUsage(run.usage, usage);
}

/** Reports a failure that the run survives. To be called once, where it is handled. */
export function reportFailure(run: Run, failure: Failure): void {
  live(run).onFailure(failure);
}

/** The run's next model call repeats the one that has failed. */
export function repeatModelCall(run: Run): void {
  live(run).modelCall = { ...live(run).modelCall, isRepeated: true };
}

/** Adds messages to the thread. The consumer of the run stores them with their events. */
export async function* append(run: Run, ...messages: readonly Message[]): Stream<void> {
  for (const message of messages) yield appended(run, message);
}

/** Adds a message to the thread. Returns the event that stores it, to be yielded next. */
export function appended(run: Run, message: Message): StreamEvent {
  live(run).messages.push(message);
  return { event: "on_message", data: { message } };
}

/** Replaces one of the thread's values. */
export async function* setState(run: Run, key: string, value: unknown): Stream<void> {
  live(run).state.set(key, value);
  yield { event: "on_state", data: { key, value } } satisfies StreamEvent;
}

/** Merges `patch` into one of the thread's values, key by key; `null` deletes a key. */
export async function* patchState(run: Run, key: string, patch: Record<string, unknown>): Stream<void> {
  yield patched(run, key, patch);
}

/** The same; returns the event that stores it, to be yielded next. */
export function patched(run: Run, key: string, patch: Record<string, unknown>): StreamEvent {
  live(run).state.set(key, merge(run.state.get(key), patch));
  return { event: "on_state", data: { key, patch } };
}

/** Makes `change` the last thing that a tool call does: it is stored with the result of the call. */
export const withResult = (change: Stream<void>): Stream<void> => tap(change, withNext);

// Every Run was made by `mutableRun` or `duringCall`; only this file writes to one.
const live = (run: Run) => run as MutableRun;
