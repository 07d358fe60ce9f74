// A turn as AI SDK UI message chunks: one assistant message for all runs of the turn.

import { type ToolCall, type ToolMessage, textOf } from "../../../core/message.ts";
import type { RunRecord } from "../../../core/records.ts";
import type { EventName, StreamEvent } from "../../../protocol/event.ts";
import type { Interrupt } from "../../../protocol/interrupt.ts";
import { merge } from "../../../protocol/patch.ts";
import type { Fold } from "../fold.ts";
import { resultText, shownFiles, shownTodos } from "../shown.ts";
import { approvalText } from "../words.ts";
import { uiPartsOf } from "./input.ts";

export interface ProjectOptions {
  /** Of the assistant message that the turn is. */
  readonly messageId: string;
  /** The major version of the client's `ai` package. A chunk that a client does not know ends its stream. */
  readonly version: 5 | 6 | 7;
  /** Questions of earlier runs of the turn that this reader has seen: the message continues with their answers. */
  readonly asked?: readonly Interrupt[];
  /** The id of the active run of the turn: questions from before it are answered. */
  readonly at?: string;
}

type DataOf<N extends EventName> = Extract<StreamEvent, { event: N }>["data"];
type Chunk = { readonly type: string } & Readonly<Record<string, unknown>>;

export function project(options: ProjectOptions): Fold {
  const chunksOf = createFold(options);
  return (event, run) => {
    const frames = chunksOf(event, run).map((chunk) => ({ type: chunk.type, data: JSON.stringify(chunk) }));
    return frames.flatMap(({ type, data }) => (LAST.has(type) ? [{ data }, { data: "[DONE]" }] : [{ data }]));
  };
}

/** One of these ends the turn. */
const LAST: ReadonlySet<string> = new Set(["finish", "abort", "error"]);

/** A part that is being written. */
interface OpenPart {
  readonly type: "text" | "reasoning";
  readonly id: string;
}

interface Subagent {
  readonly id: string;
  readonly toolCallId: string;
  readonly agent: string;
  readonly name: string;
  readonly text?: string;
  readonly status: string;
  readonly summary?: string;
}

function createFold({ messageId, version, asked, at }: ProjectOptions) {
  let isAnswered = at !== undefined;
  let isStarted = false;
  let hasSpoken = false;
  let isFailed = false;
  let hasTodos = false;
  let isStepOpen = false;
  let parts = 0;
  let open: OpenPart | undefined;
  let files: unknown;
  /** Calls whose arguments are being written, by their index in the message. */
  const writing = new Map<number, string>();
  const calls = new Map<string, ToolCall>();
  /** Those that the message shows. */
  const begunCalls = new Set<string>();
  const questions = new Map(asked?.map((each) => [each.id, each]));
  const denied = new Set<string>();
  const subagents = new Map<string, Subagent>();

  const close = (): Chunk[] => {
    if (!open) return [];
    const { type, id } = open;
    open = undefined;
    return [{ type: `${type}-end`, id }];
  };
  const endStep = (): Chunk[] => {
    const chunks = close();
    if (isStepOpen) chunks.push({ type: "finish-step" });
    isStepOpen = false;
    return chunks;
  };
  const beginStep = (): Chunk[] => {
    const chunks = isFailed ? takeBack() : endStep();
    isFailed = false;
    isStepOpen = true;
    hasSpoken = true;
    writing.clear();
    return [...chunks, { type: "start-step" }];
  };
  const write = (type: OpenPart["type"], delta: string): Chunk[] => {
    const chunks = open?.type === type ? [] : close();
    if (!open) {
      open = { type, id: `${messageId}_${++parts}` };
      chunks.push({ type: `${type}-start`, id: open.id });
    }
    chunks.push({ type: `${type}-delta`, id: open.id, delta });
    return chunks;
  };
  const start = ({ id, thread_id, agent }: RunRecord): Chunk[] => {
    if (isStarted) return [];
    isStarted = true;
    return [{ type: "start", messageId, messageMetadata: { run_id: id, thread_id, agent } }];
  };

  /** A call with its arguments, once it is known who carries it out. */
  const available = (call: ToolCall, providerExecuted: boolean): Chunk[] => {
    calls.delete(call.id);
    begunCalls.add(call.id);
    const { id: toolCallId, name: toolName, args: input } = call;
    return [{ type: "tool-input-available", toolCallId, toolName, input, dynamic: true, providerExecuted }];
  };
  const begun = (id: string): Chunk[] => {
    const call = calls.get(id);
    return call ? available(call, true) : [];
  };

  const asks = (interrupt: Interrupt): Chunk[] => {
    const { id, kind, call_id: toolCallId, prompt, name, args, asked_by } = interrupt;
    const isKnown = questions.has(id);
    questions.set(id, interrupt);
    if (isAnswered) return begun(toolCallId);
    if (isKnown) return [];
    if (kind !== "approval") {
      // The call was begun as the server's own: only now it shows that the page carries it out. A subagent's has no part yet.
      const toolCall = { id: asked_by ? id : toolCallId, name, args };
      return [...begun(toolCallId), ...available(toolCall, false)];
    }
    const chunks = asked_by ? begun(toolCallId) : available({ id: toolCallId, name, args }, true);
    // It cannot be asked otherwise: the next message answers.
    if (version === 5) return [...chunks, ...close(), ...write("text", approvalText(interrupt)), ...close()];
    return [...chunks, { type: "tool-approval-request", approvalId: id, toolCallId, reason: prompt }];
  };

  const result = (message: ToolMessage): Chunk[] => {
    const { tool_call_id: toolCallId, content, error } = message;
    const chunks = begun(toolCallId);
    // Of a call that waited when the user said something else: an earlier message shows it, and a client stops at it here.
    if (!asked && !begunCalls.has(toolCallId)) return [];
    if (error === undefined) {
      const output = typeof content === "string" ? content : textOf(content);
      return [...chunks, { type: "tool-output-available", toolCallId, output, dynamic: true }];
    }
    if (denied.delete(toolCallId) && version > 5)
      return [...chunks, { type: "tool-output-denied", toolCallId }];
    return [
      ...chunks,
      { type: "tool-output-error", toolCallId, errorText: resultText(message), dynamic: true },
    ];
  };

  const shown = (subagent: Subagent): Chunk[] => {
    subagents.set(subagent.id, subagent);
    return [{ type: "data-subagent", id: subagent.id, data: subagent }];
  };
  const ofSubagent = (event: StreamEvent, path: readonly string[]): Chunk[] => {
    if (event.event === "on_subagent_start") {
      const { id, call_id: toolCallId, agent, name } = event.data;
      return shown({ id, toolCallId, agent, name, status: "running" });
    }
    if (event.event === "on_subagent_end") {
      const known = subagents.get(event.data.id);
      return known ? shown({ ...known, status: event.data.status, summary: event.data.summary }) : [];
    }
    const known = subagents.get(path.at(-1) ?? "");
    if (event.event !== "on_message" || !known || event.data.message.role !== "assistant") return [];
    return event.data.message.content ? shown({ ...known, text: event.data.message.content }) : [];
  };

  /** Takes back what a failed attempt said, once another begins. In versions before 7 it stays, and a new step begins. */
  const takeBack = (): Chunk[] => (version < 7 ? endStep() : [{ type: "reset-step" }, ...endStep()]);

  return (event: StreamEvent, run: RunRecord): Chunk[] => {
    isAnswered &&= run.id !== at;
    if (event.path && event.path.length > 0) return ofSubagent(event, event.path);
    switch (event.event) {
      case "run_start":
        return start(run);
      case "on_chat_model_start":
        return beginStep();
      case "on_chat_model_stream": {
        const { data } = event;
        if ("delta" in data) return write("text", data.delta);
        if ("reasoning_delta" in data) return write("reasoning", data.reasoning_delta);
        return "tool_call" in data ? argumentsOf(data.tool_call) : [];
      }
      case "on_chat_model_end":
        isFailed = event.data.error !== undefined;
        return close();
      case "message_discard":
        isFailed = true;
        return close();
      case "on_message":
        return messageOf(event.data);
      case "on_tool_start":
        return begun(event.data.call_id);
      case "on_tool_progress": {
        const { call_id: toolCallId, output: delta } = event.data;
        return [{ type: "data-progress", data: { toolCallId, delta }, transient: true }];
      }
      case "on_interrupt":
        return asks(event.data);
      case "on_resume": {
        const question = questions.get(event.data.id);
        if (question && event.data.decision === "deny") denied.add(question.call_id);
        return [];
      }
      case "on_state":
        return stateOf(event.data);
      case "on_subagent_start":
      case "on_subagent_end":
        return ofSubagent(event, []);
      case "warning":
        return [{ type: "data-notice", data: event.data, transient: true }];
      case "error":
        return [...endStep(), { type: "error", errorText: event.data.message }];
      case "done":
        return ended(event.data);
      default:
        return [];
    }
  };

  function argumentsOf({
    index,
    id,
    name,
    args_delta,
  }: {
    index: number;
    id?: string | undefined;
    name?: string | undefined;
    args_delta: string;
  }): Chunk[] {
    const chunks = close();
    const isNew = id !== undefined && name !== undefined && writing.get(index) !== id;
    if (isNew) {
      writing.set(index, id);
      begunCalls.add(id);
      chunks.push({ type: "tool-input-start", toolCallId: id, toolName: name, dynamic: true });
    }
    const toolCallId = writing.get(index);
    if (toolCallId !== undefined && args_delta !== "")
      chunks.push({ type: "tool-input-delta", toolCallId, inputTextDelta: args_delta });
    return chunks;
  }

  function messageOf({ message }: DataOf<"on_message">): Chunk[] {
    if (message.role === "assistant") for (const call of message.tool_calls ?? []) calls.set(call.id, call);
    if (message.role === "tool") return result(message);
    // What the user said while the run was active. Versions before 7 show it after a reload.
    if (message.role !== "user" || !hasSpoken || version < 7) return [];
    return [...endStep(), { type: "steering-message", id: message.id, parts: uiPartsOf(message.content) }];
  }

  function stateOf({ key, value, patch }: DataOf<"on_state">): Chunk[] {
    if (key === "todos") {
      const todos = shownTodos(value);
      const isNews = hasTodos || todos.length > 0;
      hasTodos = isNews;
      return isNews ? [{ type: "data-todos", id: "todos", data: todos }] : [];
    }
    if (key !== "files") return [];
    files = patch ? merge(files, patch) : value;
    return [{ type: "data-files", id: "files", data: shownFiles(files) }];
  }

  function ended({ status, stop_reason, usage }: DataOf<"done">): Chunk[] {
    // The turn continues when its deferred result arrives, or has continued with the answers.
    const isWaiting =
      status === "interrupted" && stop_reason === "tool_use" && calls.size === 0 && questions.size === 0;
    if (isAnswered || isWaiting) return endStep();
    const chunks = [...[...calls.values()].flatMap((call) => available(call, true)), ...endStep()];
    if (status === "cancelled") return [...chunks, { type: "abort", reason: stop_reason }];
    if (status === "error") return [...chunks, { type: "error", errorText: limitReached(stop_reason) }];
    const finishReason = status === "interrupted" ? "tool-calls" : (FINISH[stop_reason] ?? "stop");
    return [...chunks, { type: "finish", finishReason, messageMetadata: { usage } }];
  }
}

const FINISH: Readonly<Record<string, string>> = { max_tokens: "length", refusal: "content-filter" };

const limitReached = (reason: string) => `The run has reached a limit: ${reason}.`;
