// Reads an agent's events and derives its model calls with their attempts, the parts of its answers, and its tool
// calls.

import type { EventData, StreamEvent } from "./event.ts";
import type { AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage } from "./message.ts";

/** A model call, which writes one message. */
export interface Step {
  /** The id of the message. */
  readonly id: string;
  readonly model: string;
  /** True if the previous attempt failed or was discarded. The text of that attempt no longer counts. */
  readonly retries: boolean;
}

export interface StepEnd {
  readonly id: string;
  /** True if the call failed or its message was discarded. `error` contains the reason for a failed call. */
  readonly failed: boolean;
  readonly error: EventData<"on_chat_model_end">["error"];
  readonly stop_reason: string | undefined;
  readonly usage: EventData<"on_chat_model_end">["usage"];
}

export type PartKind = "text" | "thought";
export type CallDelta = Extract<EventData<"on_chat_model_stream">, { tool_call: unknown }>["tool_call"];

/** The return value of a handler. A handler that only changes its reader's own state returns nothing. */
// biome-ignore lint/suspicious/noConfusingVoidType: a handler may be a function without a result.
export type HandlerResult<F> = readonly F[] | void;

/**
 * Handlers are called in the order of the events, and their return values are sent. If a handler is missing, nothing is
 * sent.
 */
export interface AgentHandlers<F> {
  step(step: Step): HandlerResult<F>;
  /** A part with text or reasoning begins. The previous part and a call's arguments have ended. */
  open(kind: PartKind): HandlerResult<F>;
  delta(kind: PartKind, text: string): HandlerResult<F>;
  close(kind: PartKind): HandlerResult<F>;
  callDelta(delta: CallDelta): HandlerResult<F>;
  stepEnd(end: StepEnd): HandlerResult<F>;
  /** `isStreamed` is true if the step streamed part of the message and did not fail. */
  assistant(message: AssistantMessage, isStreamed: boolean): HandlerResult<F>;
  /** `isSteering` is true if the message arrived while the agent was working. */
  user(message: UserMessage, isSteering: boolean): HandlerResult<F>;
  system(message: SystemMessage, isSteering: boolean): HandlerResult<F>;
  /** The result of a call. */
  result(message: ToolMessage): HandlerResult<F>;
  toolStart(tool: string, data: EventData<"on_tool_start">): HandlerResult<F>;
  toolProgress(tool: string, data: EventData<"on_tool_progress">): HandlerResult<F>;
  toolEnd(tool: string, data: EventData<"on_tool_end">): HandlerResult<F>;
  warning(data: EventData<"warning">): HandlerResult<F>;
}

export interface AgentReader<F> {
  /** Call this with each event of the agent, in order. Ignores events of runs and of other agents. */
  see(event: StreamEvent): readonly F[];
  /** Closes the open part. */
  close(): readonly F[];
}

const NOTHING: readonly never[] = [];

export function readAgent<F>(on: Partial<AgentHandlers<F>>): AgentReader<F> {
  let hasSpoken = false;
  let isFailed = false;
  /** The message of the last step, unless that step failed. */
  let written: { readonly id: string; hasParts: boolean } | undefined;
  let open: PartKind | undefined;

  const close = (): readonly F[] => {
    const kind = open;
    open = undefined;
    return (kind && on.close?.(kind)) ?? NOTHING;
  };

  const write = (kind: PartKind, text: string): readonly F[] => {
    if (open === kind) return on.delta?.(kind, text) ?? NOTHING;
    const closed = close();
    open = kind;
    return joined(closed, on.open?.(kind), on.delta?.(kind, text));
  };

  const begin = ({ message_id: id, model }: EventData<"on_chat_model_start">): readonly F[] => {
    const closed = close();
    const retries = isFailed;
    isFailed = false;
    hasSpoken = true;
    written = { id, hasParts: false };
    return joined(closed, on.step?.({ id, model, retries }));
  };

  const end = (step: StepEnd): readonly F[] => {
    const closed = close();
    isFailed = step.failed;
    if (step.failed) written = undefined;
    return joined(closed, on.stepEnd?.(step));
  };

  const append = (message: Message): HandlerResult<F> => {
    switch (message.role) {
      case "assistant":
        return on.assistant?.(message, written?.id === message.id && written.hasParts);
      case "user":
        return on.user?.(message, hasSpoken);
      case "tool":
        return on.result?.(message);
      case "system":
        return on.system?.(message, hasSpoken);
    }
  };

  const stream = (data: EventData<"on_chat_model_stream">): readonly F[] => {
    if (written) written.hasParts = true;
    if ("delta" in data) return write("text", data.delta);
    if ("reasoning_delta" in data) return write("thought", data.reasoning_delta);
    return "tool_call" in data ? joined(close(), on.callDelta?.(data.tool_call)) : NOTHING;
  };

  const see = (event: StreamEvent): HandlerResult<F> => {
    switch (event.event) {
      case "on_chat_model_stream":
        return stream(event.data);
      case "on_chat_model_start":
        return begin(event.data);
      case "on_chat_model_end": {
        const { message_id: id, error, stop_reason, usage } = event.data;
        return end({ id, failed: error !== undefined, error, stop_reason, usage });
      }
      case "message_discard": {
        const { message_id: id } = event.data;
        return end({ id, failed: true, error: undefined, stop_reason: undefined, usage: undefined });
      }
      case "on_message":
        return append(event.data.message);
      case "on_tool_start":
        return on.toolStart?.(event.name, event.data);
      case "on_tool_progress":
        return on.toolProgress?.(event.name, event.data);
      case "on_tool_end":
        return on.toolEnd?.(event.name, event.data);
      case "warning":
        return on.warning?.(event.data);
      default:
        return NOTHING;
    }
  };
  return { see: (event) => see(event) ?? NOTHING, close };
}

/**
 * Like `readAgent`, for the agent at a path. A process that takes over a run reads the events of its subagents again,
 * starting with the first event. In that case, known messages are skipped.
 */
export function readSubagent<F>(on: Partial<AgentHandlers<F>>): AgentReader<F> {
  const reader = readAgent(on);
  /** The ids of known messages. */
  const known = new Set<string>();
  let isStepKnown = false;

  const isKnown = (event: StreamEvent): boolean => {
    switch (event.event) {
      case "on_chat_model_start":
        isStepKnown = known.has(event.data.message_id);
        return isStepKnown;
      case "on_chat_model_stream":
      case "on_chat_model_end":
      case "message_discard":
        return isStepKnown;
      case "on_message": {
        const { id } = event.data.message;
        const isThere = known.has(id);
        known.add(id);
        return isThere;
      }
      default:
        return false;
    }
  };
  return { see: (event) => (isKnown(event) ? NOTHING : reader.see(event)), close: reader.close };
}

/** Joins the frames of several handlers. Returns an existing list if all others are empty. */
export function joined<F>(...lists: readonly (HandlerResult<F> | undefined)[]): readonly F[] {
  let all: readonly F[] = NOTHING;
  for (const list of lists) if (list && list.length > 0) all = all.length === 0 ? list : [...all, ...list];
  return all;
}
