// Converts a turn to AI SDK UI message chunks: one assistant message for all runs of the turn.

import { type ToolCall, textOf } from "../../agent/core/message.ts";
import type { RunRecord } from "../../agent/core/records.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import { asksToApprove, type Interrupt, promptText } from "../../protocol/interrupt.ts";
import { readTurn } from "../../protocol/turn-reader.ts";
import type { Frame } from "../../server/http/sse.ts";
import type { Fold } from "../fold.ts";
import { resultText, shownFiles, shownTodos } from "../shown.ts";
import { approvalText } from "../words.ts";
import { sourceParts, uiPartsOf } from "./history.ts";

export interface ProjectOptions {
  /** The id of the turn's assistant message. */
  readonly messageId: string;
  /** The major version of the client's `ai` package. An unknown chunk ends a client's stream. */
  readonly version: 5 | 6 | 7;
  /** Questions of the turn's earlier runs that this reader has seen. The message continues with their answers. */
  readonly asked?: readonly Interrupt[];
  /** The id of the turn's active run. Earlier questions have been answered. */
  readonly at?: string;
}

type Chunk = { readonly type: string } & Readonly<Record<string, unknown>>;

export function project(options: ProjectOptions): Fold {
  const chunksOf = createTable(options);
  return (event, run) => chunksOf(event, run).flatMap(framesOf);
}

function framesOf(chunk: Chunk): Frame[] {
  const frame = { data: JSON.stringify(chunk) };
  return LAST.has(chunk.type) ? [frame, { data: "[DONE]" }] : [frame];
}

/** The chunks that end the turn. */
const LAST: ReadonlySet<string> = new Set(["finish", "abort", "error"]);

const PARTS = { text: "text", thought: "reasoning" } as const;

function createTable({ messageId, version, asked, at }: ProjectOptions) {
  let isAnswered = at !== undefined;
  let hasTodos = false;
  let isStepOpen = false;
  let parts = 0;
  /** The calls whose arguments are being written, by their index in the message. */
  const writing = new Map<number, string>();
  const calls = new Map<string, ToolCall>();
  /** The calls that the message shows. */
  const begunCalls = new Set<string>();
  const denied = new Set<string>();
  const subagents = createSubagents();

  const partId = () => `${messageId}_${parts}`;
  const endStep = (): Chunk[] => {
    const wasOpen = isStepOpen;
    isStepOpen = false;
    return wasOpen ? [{ type: "finish-step" }] : [];
  };
  /** Returns a call with its arguments, once it is known which side executes it. */
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
  /** Version 5 has no other way to ask, so the user's next message is the answer. */
  const askInWords = (question: Interrupt): Chunk[] => {
    parts++;
    const id = partId();
    const delta = approvalText(question);
    return [
      { type: "text-start", id },
      { type: "text-delta", id, delta },
      { type: "text-end", id },
    ];
  };

  const read = readTurn<Chunk, RunRecord>(
    {
      start: ({ id, thread_id, agent }) => [
        { type: "start", messageId, messageMetadata: { run_id: id, thread_id, agent } },
      ],
      step({ retries }) {
        // The text of a failed attempt is retracted once the next attempt starts. Before version 7 it cannot be
        // retracted, so a new step starts.
        const reset = retries && version > 6 ? [{ type: "reset-step" }] : [];
        const chunks = [...reset, ...endStep(), { type: "start-step" }];
        isStepOpen = true;
        writing.clear();
        return chunks;
      },
      open(kind) {
        parts++;
        return [{ type: `${PARTS[kind]}-start`, id: partId() }];
      },
      delta: (kind, delta) => [{ type: `${PARTS[kind]}-delta`, id: partId(), delta }],
      close: (kind) => [{ type: `${PARTS[kind]}-end`, id: partId() }],
      callDelta({ index, id, name, args_delta }) {
        const chunks: Chunk[] = [];
        if (id !== undefined && name !== undefined && writing.get(index) !== id) {
          writing.set(index, id);
          begunCalls.add(id);
          chunks.push({ type: "tool-input-start", toolCallId: id, toolName: name, dynamic: true });
        }
        const toolCallId = writing.get(index);
        if (toolCallId !== undefined && args_delta !== "")
          chunks.push({ type: "tool-input-delta", toolCallId, inputTextDelta: args_delta });
        return chunks;
      },
      assistant(message) {
        for (const call of message.tool_calls ?? []) calls.set(call.id, call);
        return sourceParts(message.id, message);
      },
      // Sends the user's steering messages. Versions before 7 show them after a reload.
      user: ({ id, content }, isSteering) =>
        isSteering && version > 6
          ? [...endStep(), { type: "steering-message", id, parts: uiPartsOf(content) }]
          : [],
      result(message) {
        const { tool_call_id: toolCallId, content, error } = message;
        const chunks = begun(toolCallId);
        // The result belongs to a call that was waiting when the user sent another message. An earlier message shows
        // the call, and a client would fail if this message contained its result.
        if (!asked && !begunCalls.has(toolCallId)) return [];
        if (error === undefined) {
          const output = typeof content === "string" ? content : textOf(content);
          return [
            ...chunks,
            { type: "tool-output-available", toolCallId, output, dynamic: true },
            ...sourceParts(toolCallId, message),
          ];
        }
        if (denied.delete(toolCallId) && version > 5)
          return [...chunks, { type: "tool-output-denied", toolCallId }];
        const errorText = resultText(message);
        return [...chunks, { type: "tool-output-error", toolCallId, errorText, dynamic: true }];
      },
      toolStart: (_, { call_id }) => begun(call_id),
      toolProgress: (_, { call_id: toolCallId, output: delta }) => [
        { type: "data-progress", data: { toolCallId, delta }, transient: true },
      ],
      ask(question, isKnown) {
        const { id, kind, call_id: toolCallId, name, args, asked_by } = question;
        if (isAnswered) return begun(toolCallId);
        if (isKnown) return [];
        // The call was announced as the server's own but turns out to be the page's. A subagent's call has no part yet.
        if (!asksToApprove(kind))
          return [...begun(toolCallId), ...available({ id: asked_by ? id : toolCallId, name, args }, false)];
        const shown = asked_by ? begun(toolCallId) : available({ id: toolCallId, name, args }, true);
        if (version === 5) return [...shown, ...askInWords(question)];
        return [
          ...shown,
          { type: "tool-approval-request", approvalId: id, toolCallId, reason: promptText(question) },
        ];
      },
      answered({ decision }, question) {
        if (question && decision === "deny") denied.add(question.call_id);
        return [];
      },
      todos(value) {
        const data = shownTodos(value);
        hasTodos ||= data.length > 0;
        return hasTodos ? [{ type: "data-todos", id: "todos", data }] : [];
      },
      files: (value) => [{ type: "data-files", id: "files", data: shownFiles(value) }],
      subagent: subagents.chunksOf,
      warning: (data) => [{ type: "data-notice", data, transient: true }],
      end({ as, status, reason, message, usage }) {
        if (as === "failed") return [...endStep(), { type: "error", errorText: message }];
        // The turn continues when its deferred result arrives, or has already continued with the answers.
        if (isAnswered || as === "waits") return endStep();
        const chunks = [...[...calls.values()].flatMap((call) => available(call, true)), ...endStep()];
        if (as === "cancelled") return [...chunks, { type: "abort", reason }];
        if (as === "limit") return [...chunks, { type: "error", errorText: message }];
        const finishReason = status === "interrupted" ? "tool-calls" : (FINISH[reason] ?? "stop");
        return [...chunks, { type: "finish", finishReason, messageMetadata: { usage } }];
      },
    },
    { asked },
  );
  return (event: StreamEvent, run: RunRecord) => {
    isAnswered &&= run.id !== at;
    return read(event, run);
  };
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

/** Sends subagents as data parts. Each part replaces the previous one, so it contains the whole subagent. */
function createSubagents() {
  const known = new Map<string, Subagent>();
  const change = (id: string, changes: Partial<Subagent>): Chunk[] => {
    const before = known.get(id);
    if (!before) return [];
    const data = { ...before, ...changes };
    known.set(id, data);
    return [{ type: "data-subagent", id, data }];
  };
  return {
    chunksOf(event: StreamEvent, path: readonly string[]): Chunk[] {
      switch (event.event) {
        case "on_subagent_start": {
          const { id, call_id: toolCallId, agent, name } = event.data;
          known.set(id, { id, toolCallId, agent, name, status: "running" });
          return change(id, {});
        }
        case "on_subagent_end": {
          const { id, status, summary } = event.data;
          return change(id, { status, summary });
        }
        case "on_message": {
          const { message } = event.data;
          const text = message.role === "assistant" ? message.content : "";
          return text ? change(path.at(-1) ?? "", { text }) : [];
        }
        default:
          return [];
      }
    },
  };
}

const FINISH: Readonly<Record<string, string>> = { max_tokens: "length", refusal: "content-filter" };
