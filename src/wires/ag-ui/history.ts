// Converts a thread to AG-UI's messages and state. The result matches the state of a client that has read the thread's
// runs.

import { type Content, type Message, textOf } from "../../agent/core/message.ts";
import { asksToApprove, type Interrupt, promptText } from "../../protocol/interrupt.ts";
import { resultText, shownContents, shownTodos } from "../shown.ts";

export type PlainObject = Readonly<Record<string, unknown>>;
/** An event of the protocol. */
export type AguiEvent = { readonly type: string } & PlainObject;

/** The subagent that a message or an event belongs to. If it is missing, they belong to the agent itself. */
export interface Attribution {
  readonly subagentRunId?: string;
}

/** Returns the id of the reasoning that precedes the message with this id. */
export const reasoningId = (messageId: string) => `${messageId}_reasoning`;

/**
 * Returns the client's id for a call. A subagent's call gets a prefix to distinguish it from the calls of other agents.
 */
export const callIdOf = (id: string, { subagentRunId }: Attribution) =>
  subagentRunId === undefined ? id : `${subagentRunId}:${id}`;

/** Converts a message of the thread to client messages. Reasoning becomes its own message, before the text. */
export function messagesOf(message: Message, whose: Attribution = {}): PlainObject[] {
  const { id, role } = message;
  if (message.role === "tool")
    return [
      { id, role, toolCallId: callIdOf(message.tool_call_id, whose), content: resultText(message), ...whose },
    ];
  if (message.role !== "assistant")
    return [
      { id, role, content: message.role === "user" ? contentOf(message.content) : textOf(message.content) },
    ];
  const thought = (message.reasoning ?? []).map(({ text }) => text).join("");
  const calls = (message.tool_calls ?? []).map(({ id: callId, name, args, malformed }) => ({
    id: callIdOf(callId, whose),
    type: "function",
    function: { name, arguments: malformed ?? JSON.stringify(args) },
  }));
  const said = {
    ...(message.content === "" ? {} : { content: message.content }),
    ...(calls.length === 0 ? {} : { toolCalls: calls }),
  };
  return [
    ...(thought === "" ? [] : [{ id: reasoningId(id), role: "reasoning", content: thought, ...whose }]),
    ...(Object.keys(said).length === 0 ? [] : [{ id, role, ...said, ...whose }]),
  ];
}

function contentOf(content: Content): unknown {
  if (typeof content === "string") return content;
  return content.map((part) => {
    if (part.type === "text") return { type: "text", text: part.text };
    const source = { type: "data", value: part.data, mimeType: part.media_type };
    if (part.type === "image") return { type: "image", source };
    return { type: "document", source, ...(part.name ? { metadata: { filename: part.name } } : {}) };
  });
}

/** Returns the part of a thread's state that the client sees. */
export const stateOf = (state: PlainObject): PlainObject => ({
  todos: shownTodos(state.todos),
  files: shownContents(state.files),
});

/** Returns a question in the form for the client. */
export function interruptOf(interrupt: Interrupt, whose: Attribution = {}): PlainObject {
  const { id, kind, call_id, expires_at } = interrupt;
  return {
    id,
    reason: asksToApprove(kind) ? "tool_call" : "input_required",
    message: promptText(interrupt),
    toolCallId: call_id,
    ...(expires_at === undefined ? {} : { expiresAt: expires_at }),
    ...whose,
    responseSchema: asksToApprove(kind) ? APPROVAL : answerSchema(interrupt),
  };
}

const APPROVAL = {
  type: "object",
  properties: {
    approved: { type: "boolean" },
    reason: { type: "string" },
    editedArgs: { type: "object" },
  },
  required: ["approved"],
};

/** If the answer is free text, the options are examples. */
const answerSchema = ({ options, one_of_options }: Interrupt) => ({
  type: "object",
  properties: {
    answer: { type: "string", ...(options ? { [one_of_options ? "enum" : "examples"]: options } : {}) },
  },
  required: ["answer"],
});
