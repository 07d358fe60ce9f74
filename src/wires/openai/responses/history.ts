// The items of a response and of a conversation: messages, reasoning, calls and questions.

import {
  type AssistantMessage,
  type Content,
  type Message,
  type Part,
  type ToolCall,
  type ToolMessage,
  textOf,
  unanswered,
} from "../../../agent/core/message.ts";
import { asksToApprove, type Interrupt } from "../../../protocol/interrupt.ts";
import { resultText } from "../../shown.ts";
import { questionText } from "../../words.ts";
import { citedIn, citing } from "./citations.ts";
import { approvalIdOf, askedCallOf } from "./ids.ts";

export type Item = { readonly type: string; readonly id: string } & Readonly<Record<string, unknown>>;
export type ItemStatus = "in_progress" | "completed" | "incomplete";

/** The agent's own tools are shown as tools of a single MCP server, so no client executes them. */
const SERVER_LABEL = "skein";

export const textPart = (text: string, annotations: readonly object[] = []) => ({
  type: "output_text",
  text,
  annotations,
});
export const summaryPart = (text: string) => ({ type: "summary_text", text });

export const messageItem = (id: string, status: ItemStatus, ...content: object[]): Item => ({
  id,
  type: "message",
  status,
  role: "assistant",
  content,
});

export const reasoningItem = (id: string, status: ItemStatus, ...summary: object[]): Item => ({
  id,
  type: "reasoning",
  status,
  summary,
});

export const reasoningIdOf = (messageId: string, index: number) =>
  index === 0 ? `rs_${messageId}` : `rs_${messageId}_${index}`;

/** Returns a call of a server tool. If it has no result, it is in progress. */
export function callItem(
  { id, name, args }: Pick<ToolCall, "id" | "name" | "args">,
  result?: Pick<ToolMessage, "content" | "error">,
  approval_request_id: string | null = null,
): Item {
  const base = { id: `mcp_${id}`, type: "mcp_call", server_label: SERVER_LABEL, name, approval_request_id };
  if (!result) return { ...base, status: "in_progress", arguments: "", output: null, error: null };
  const { content, error } = result;
  const said = { ...base, arguments: JSON.stringify(args) };
  if (error === undefined) return { ...said, status: "completed", output: textOf(content), error: null };
  const failure = { type: "mcp_tool_execution_error", content: [{ type: "text", text: resultText(result) }] };
  return { ...said, status: "failed", output: null, error: failure };
}

/** Returns an open interrupt as the client sees it. */
export function questionItem(question: Interrupt): Item {
  const { kind, name, args } = question;
  const call_id = askedCallOf(question);
  if (asksToApprove(kind))
    return {
      id: approvalIdOf(question),
      type: "mcp_approval_request",
      server_label: SERVER_LABEL,
      name,
      arguments: JSON.stringify(question.url === undefined ? args : { ...args, url: question.url }),
    };
  if (kind === "question")
    return messageItem(`ask_${call_id}`, "completed", textPart(questionText(question)));
  return functionCall(call_id, name, args, "completed");
}

export const functionCall = (call_id: string, name: string, args: unknown, status: ItemStatus): Item => ({
  id: `fc_${call_id}`,
  type: "function_call",
  status,
  call_id,
  name,
  arguments: JSON.stringify(args),
});

const inputPart = (part: Part) => {
  if (part.type === "text") return { type: "input_text", text: part.text };
  const url = `data:${part.media_type};base64,${part.data}`;
  if (part.type === "image") return { type: "input_image", detail: "auto", image_url: url, file_id: null };
  return { type: "input_file", file_data: url, filename: part.name ?? "file", file_id: null };
};

const inputParts = (content: Content) =>
  typeof content === "string" ? [{ type: "input_text", text: content }] : content.map(inputPart);

export const inputItem = ({ id, role, content }: Message): Item => ({
  id,
  type: "message",
  status: "completed",
  role,
  content: inputParts(content),
});

export interface ConversationHistory {
  readonly messages: readonly Message[];
  readonly open: readonly Interrupt[];
  /** Returns true if the server executes the tool. */
  readonly isServerTool: (name: string) => boolean;
}

/** Returns a conversation's items, with the ids that they had in the stream. */
export function historyOf({ messages, open, isServerTool }: ConversationHistory): Item[] {
  const calls = new Map<string, ToolCall>();
  const cited = citing();
  const items = messages.flatMap((message): Item[] => {
    if (message.role === "tool") {
      cited.see(message);
      const call = calls.get(message.tool_call_id) ?? { ...message, id: message.tool_call_id, args: {} };
      if (isServerTool(message.name)) return [callItem(call, message)];
      return [functionCall(call.id, call.name, call.args, "completed"), functionOutput(message)];
    }
    if (message.role !== "assistant") return [inputItem(message)];
    for (const call of message.tool_calls ?? []) calls.set(call.id, call);
    const said = spoken(message, [...citedIn(message), ...cited.in(message.content)]);
    if (!message.tool_calls?.length) cited.clear();
    return said;
  });
  const asked = new Set(open.map(({ call_id }) => call_id));
  const others = unanswered(messages).filter(({ id, name }) => !asked.has(id) && !isServerTool(name));
  const waiting = others.map(({ id, name, args }) => functionCall(id, name, args, "completed"));
  return [...items, ...waiting, ...open.map(questionItem)];
}

function spoken(
  { id, content, reasoning = [], incomplete }: AssistantMessage,
  citations: readonly object[],
): Item[] {
  const thoughts = reasoning.flatMap(({ text }) => (text ? [text] : []));
  return [
    ...thoughts.map((text, index) => reasoningItem(reasoningIdOf(id, index), "completed", summaryPart(text))),
    ...(content
      ? [messageItem(id, incomplete ? "incomplete" : "completed", textPart(content, citations))]
      : []),
  ];
}

const functionOutput = (result: ToolMessage): Item => ({
  id: `fco_${result.id}`,
  type: "function_call_output",
  status: "completed",
  call_id: result.tool_call_id,
  output:
    typeof result.content === "string" || result.error ? resultText(result) : inputParts(result.content),
});
