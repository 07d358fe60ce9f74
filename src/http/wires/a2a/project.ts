// A turn as an A2A task: the updates of its stream, and what it has said so far.

import { type AssistantMessage, type Content, type Message, textOf } from "../../../core/message.ts";
import type { RunRecord } from "../../../core/records.ts";
import type { StreamEvent } from "../../../protocol/event.ts";
import type { Interrupt } from "../../../protocol/interrupt.ts";
import type { Fold } from "../fold.ts";
import { type RpcId, rpcResult } from "../json-rpc.ts";
import { shownInterrupt } from "../shown.ts";

export type TaskState = "SUBMITTED" | "WORKING" | "COMPLETED" | "INPUT_REQUIRED" | "CANCELED" | "FAILED";

type Part = { readonly text: string } | { readonly data: object };

export interface TaskMessage {
  readonly messageId: string;
  readonly contextId: string;
  readonly taskId: string;
  readonly role: "ROLE_USER" | "ROLE_AGENT";
  readonly parts: readonly Part[];
}

export interface Artifact {
  readonly artifactId: string;
  readonly parts: readonly Part[];
}

/** Which task something belongs to. */
export interface TaskRef {
  readonly taskId: string;
  readonly contextId: string;
}

export interface ProjectOptions {
  /** Of the client's request. */
  readonly id: RpcId;
  readonly ref: TaskRef;
  /** What the stream begins with: the task before its newest run. Default: the task as it is submitted. */
  readonly begin?: object;
  /** A result in the shape that the client knows. Default: that of 1.0. */
  readonly resultOf?: (result: object) => object;
}

/** The updates of a stream, as answers to the request. */
export function project({ id, ref, begin, resultOf = (result) => result }: ProjectOptions): Fold {
  let isBegun = false;
  /** The message that is being written. */
  let open: { readonly id: string; hasText: boolean } | undefined;
  let isFailed = false;
  let questions: Interrupt[] = [];

  const frame = (result: object) => ({ data: JSON.stringify(rpcResult(id, resultOf(result))) });
  const status = (state: TaskState, at: string, message?: TaskMessage) =>
    frame({ statusUpdate: { ...ref, status: statusOf(state, at, message) } });
  const artifact = (text: string, { append, lastChunk }: { append: boolean; lastChunk: boolean }) =>
    open
      ? [frame({ artifactUpdate: { ...ref, artifact: artifactOf(open.id, text), append, lastChunk } })]
      : [];

  const begun = (run: RunRecord, at: string) => {
    questions = [];
    if (isBegun) return [];
    isBegun = true;
    const state = run.resumes === undefined ? "SUBMITTED" : "WORKING";
    const task = { id: ref.taskId, contextId: ref.contextId, status: statusOf(state, at) };
    return [frame({ task: begin ?? task })];
  };
  const said = (delta: string) => {
    const append = open?.hasText === true;
    if (open) open.hasText = true;
    return artifact(delta, { append, lastChunk: false });
  };
  const written = () => {
    const frames = open?.hasText ? artifact("", { append: true, lastChunk: true }) : [];
    open = undefined;
    return frames;
  };
  /** Takes back what a failed attempt said. */
  const withdrawn = () => {
    const frames = open?.hasText ? artifact("", { append: false, lastChunk: true }) : [];
    open = undefined;
    isFailed = false;
    return frames;
  };

  /** An answer that was cut off: it was withdrawn, and the thread keeps it. */
  const again = ({ id: messageId, content, incomplete }: AssistantMessage) => {
    if (open || incomplete === undefined) return [];
    open = { id: messageId, hasText: false };
    return said(content);
  };

  return (event, run) => {
    if (event.path) return [];
    const at = ("ts" in event ? event.ts : undefined) ?? run.created_at;
    switch (event.event) {
      case "run_start":
        return begun(run, at);
      case "on_chat_model_start": {
        const frames = withdrawn();
        open = { id: event.data.message_id, hasText: false };
        return frames;
      }
      case "on_chat_model_stream":
        return "delta" in event.data ? said(event.data.delta) : [];
      case "on_chat_model_end":
        isFailed = event.data.error !== undefined;
        return isFailed ? withdrawn() : [];
      case "message_discard":
        return withdrawn();
      case "on_message":
        return event.data.message.role === "assistant" ? [...again(event.data.message), ...written()] : [];
      case "on_tool_start": {
        const { call_id, args } = event.data;
        const parts = [{ text: `Calls ${event.name}.` }, { data: { tool: event.name, call_id, args } }];
        return [status("WORKING", at, agentMessage(ref, call_id, parts))];
      }
      case "on_interrupt":
        questions.push(event.data);
        return [];
      case "error":
        return [...withdrawn(), status("FAILED", at, failure(ref, event.data.message))];
      case "done": {
        const end = endOf(event.data, questions, ref);
        return end ? [...withdrawn(), status(end.state, at, end.message)] : [];
      }
      default:
        return [];
    }
  };
}

/** Undefined: the task continues when a deferred result arrives. */
function endOf(
  { status, stop_reason }: Extract<StreamEvent, { event: "done" }>["data"],
  questions: readonly Interrupt[],
  ref: TaskRef,
): { readonly state: TaskState; readonly message?: TaskMessage } | undefined {
  if (status === "cancelled") return { state: "CANCELED" };
  if (status === "error") return { state: "FAILED", message: failure(ref, limitReached(stop_reason)) };
  if (status === "success") return { state: "COMPLETED" };
  if (questions.length > 0) return { state: "INPUT_REQUIRED", message: question(ref, questions) };
  return stop_reason === "tool_use" ? undefined : { state: "COMPLETED" };
}

export const limitReached = (reason: string) => `The run has reached a limit: ${reason}.`;

export const statusOf = (state: TaskState, timestamp: string, message?: TaskMessage) => ({
  state: `TASK_STATE_${state}`,
  timestamp,
  ...(message ? { message } : {}),
});

const agentMessage = (ref: TaskRef, messageId: string, parts: readonly Part[]): TaskMessage => ({
  messageId,
  ...ref,
  role: "ROLE_AGENT",
  parts,
});

export const failure = (ref: TaskRef, text: string) => agentMessage(ref, `${ref.taskId}.end`, [{ text }]);

/** What the task asks: in words for a person, as data for a program. */
export const question = (ref: TaskRef, open: readonly Interrupt[]) =>
  agentMessage(ref, `${ref.taskId}.${open[0]?.id ?? ""}`, [
    { text: open.map(wordsOf).join("\n\n") },
    { data: { interrupts: open.map(shownInterrupt) } },
  ]);

const wordsOf = ({ kind, prompt, options = [] }: Interrupt) =>
  [prompt, ...(kind === "question" ? options : []).map((option) => `- ${option}`)].join("\n");

const artifactOf = (artifactId: string, text: string): Artifact => ({ artifactId, parts: [{ text }] });

/** What a task's messages are in its history and among its artifacts. */
export function told(ref: TaskRef, messages: readonly Message[]) {
  const history: TaskMessage[] = [];
  const artifacts: Artifact[] = [];
  for (const message of messages) {
    if (message.role === "user")
      history.push({ messageId: message.id, ...ref, role: "ROLE_USER", parts: partsOf(message.content) });
    if (message.role !== "assistant" || !message.content) continue;
    history.push(agentMessage(ref, message.id, [{ text: message.content }]));
    artifacts.push(artifactOf(message.id, message.content));
  }
  return { history, artifacts };
}

const partsOf = (content: Content): Part[] => [
  { text: typeof content === "string" ? content : textOf(content) },
];
