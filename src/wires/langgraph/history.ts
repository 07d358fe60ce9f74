// Converts Skein's messages, state and interrupts to the shapes of LangChain's clients. The functions are pure, and all
// routes and folds of this wire use them.

import { createHash } from "node:crypto";
import type { AssistantMessage, Content, Message, Part, ToolCall, Usage } from "../../agent/core/message.ts";
import { type Interrupt, promptText } from "../../protocol/interrupt.ts";
import { resultText, type ShownTodo, shownContents, shownTodos } from "../shown.ts";

export interface LangChainMessage {
  readonly type: "human" | "ai" | "tool" | "system";
  readonly id: string;
  readonly content: string | readonly Readonly<Record<string, unknown>>[];
  readonly additional_kwargs: Readonly<Record<string, unknown>>;
  readonly response_metadata: Readonly<Record<string, unknown>>;
  readonly tool_calls?: readonly LangChainToolCall[];
  readonly invalid_tool_calls?: readonly object[];
  readonly usage_metadata?: UsageMetadata;
  readonly name?: string;
  readonly tool_call_id?: string;
  readonly status?: "success" | "error";
}

export interface LangChainToolCall {
  readonly type: "tool_call";
  readonly id: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

export function messageShape(message: Message): LangChainMessage {
  const { id, role, content } = message;
  const base = { id, additional_kwargs: {}, response_metadata: {} };
  switch (role) {
    case "user":
      return { ...base, type: "human", content: contentShape(content) };
    case "system":
      return { ...base, type: "system", content: contentShape(content) };
    case "tool": {
      const { name, tool_call_id, error } = message;
      const status = error === undefined ? "success" : "error";
      return { ...base, type: "tool", content: resultText(message), name, tool_call_id, status };
    }
    case "assistant":
      return { ...base, ...assistantShape(message) };
  }
}

function assistantShape({ content, tool_calls = [], reasoning = [], usage }: AssistantMessage) {
  const thought = reasoning.map(({ text }) => text).join("\n\n");
  return {
    type: "ai" as const,
    content,
    additional_kwargs: thought === "" ? {} : { reasoning_content: thought },
    tool_calls: tool_calls.map(toolCallShape),
    invalid_tool_calls: [],
    ...(usage ? { usage_metadata: usageShape(usage) } : {}),
  };
}

export function toolCallShape({ id, name, args }: ToolCall): LangChainToolCall {
  return { type: "tool_call", id, name, args: shownArgs(name, args) };
}

/** The delegation tool gets the argument names by which front ends recognize a subagent. */
export function shownArgs(name: string, args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  if (name !== "task" || typeof args.agent !== "string") return { ...args };
  return { ...args, subagent_type: args.agent, description: args.task };
}

export interface UsageMetadata {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly total_tokens: number;
  readonly input_token_details: { readonly cache_read: number; readonly cache_creation: number };
}

export const usageShape = (usage: Usage): UsageMetadata => ({
  input_tokens: usage.input_tokens,
  output_tokens: usage.output_tokens,
  total_tokens: usage.input_tokens + usage.output_tokens,
  input_token_details: { cache_read: usage.cache_read_tokens, cache_creation: usage.cache_write_tokens },
});

/** Text stays a string, because front ends join the parts of a list with spaces. */
function contentShape(content: Content): LangChainMessage["content"] {
  return typeof content === "string" ? content : content.map(blockOf);
}

function blockOf(part: Part): Readonly<Record<string, unknown>> {
  if (part.type === "text") return { type: "text", text: part.text };
  const { type, media_type, data } = part;
  const name = part.type === "file" ? part.name : undefined;
  // Older and newer clients use different names for the media type.
  const block = { type, source_type: "base64", mime_type: media_type, mimeType: media_type, data };
  return name === undefined ? block : { ...block, metadata: { name, filename: name } };
}

/** The part of a thread's state that clients see, without its messages. */
export interface ShownState {
  readonly todos: readonly ShownTodo[];
  /** The content of each file, by path. For a long file, a note of its size replaces the content. */
  readonly files: Readonly<Record<string, string>>;
}

export interface StateValues extends ShownState {
  readonly messages: readonly LangChainMessage[];
}

export const stateShape = (state: Readonly<Record<string, unknown>>): ShownState => ({
  todos: shownTodos(state.todos),
  files: shownContents(state.files),
});

export const valuesOf = (
  messages: readonly Message[],
  state: Readonly<Record<string, unknown>>,
): StateValues => ({
  messages: messages.map(messageShape),
  ...stateShape(state),
});

export interface LangChainInterrupt {
  readonly id: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/**
 * The interrupts that form one Interrupt of the wire: either all approvals and questions of a run, or one tool of the
 * front end.
 */
export interface InterruptGroup {
  readonly id: string;
  readonly kind: "people" | "tool";
  readonly asked: readonly Interrupt[];
}

/** Groups a thread's open interrupts. A group keeps its id as long as it asks the same questions. */
export function interruptGroups(open: readonly Interrupt[]): InterruptGroup[] {
  const people = open.filter(({ kind }) => kind !== "tool");
  const tools = open.filter(({ kind }) => kind === "tool");
  const group = (kind: InterruptGroup["kind"], asked: readonly Interrupt[]) => ({
    id: idOf(asked),
    kind,
    asked,
  });
  return [
    ...(people.length > 0 ? [group("people", people)] : []),
    ...tools.map((each) => group("tool", [each])),
  ];
}

/** Call ids may repeat in a thread, so the time distinguishes two questions. */
function idOf(asked: readonly Interrupt[]): string {
  const names = asked.map(({ id, created_at }) => `${id} ${created_at}`);
  return createHash("sha256").update(names.join("\n")).digest("hex").slice(0, 32);
}

export const interruptsOf = (open: readonly Interrupt[]): LangChainInterrupt[] =>
  interruptGroups(open).map(({ id, kind, asked }) => ({
    id,
    value: kind === "people" ? reviewOf(asked) : toolRequestOf(asked),
  }));

const ALLOWED: Readonly<Record<Interrupt["kind"], readonly string[]>> = {
  approval: ["approve", "edit", "reject", "respond"],
  question: ["respond", "edit", "reject"],
  tool: ["respond", "edit", "reject"],
  connect: ["approve", "reject"],
};

function reviewOf(asked: readonly Interrupt[]) {
  return {
    action_requests: asked.map((each) => ({
      name: each.name,
      // The front end sends these values back, edited.
      args: shownArgs(each.name, each.kind === "question" ? questionArgs(each) : each.args),
      description: promptText(each),
    })),
    review_configs: asked.map(({ name, kind }) => ({
      action_name: name,
      allowed_decisions: ALLOWED[kind],
    })),
  };
}

/** Adds a field for the answer, because front ends that cannot `respond` show a form for the arguments. */
const questionArgs = ({ args, options }: Interrupt) => ({
  ...args,
  ...(options ? { options } : {}),
  answer: "",
});

function toolRequestOf(asked: readonly Interrupt[]) {
  const [tool] = asked.map((each) => ({ id: callIdOf(each), name: each.name, args: each.args }));
  return { type: "tool", tool_call: tool };
}

/** Returns the call's id in the front end. A subagent's call has no id in this thread. */
export const callIdOf = ({ id, call_id, asked_by }: Interrupt) => (asked_by ? id : call_id);
