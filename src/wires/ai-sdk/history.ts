// Converts a thread to UI messages.

import { type Content, type Message, type ToolMessage, textOf } from "../../agent/core/message.ts";
import { asksToApprove, type Interrupt } from "../../protocol/interrupt.ts";
import { resultText, shownFiles, shownTodos } from "../shown.ts";
import { approvalText } from "../words.ts";
import { ToolPart, type UIMessage, type UIPart } from "./input.ts";

/** Returns the id of the assistant message that answers this user message. */
export const answerIdOf = (userMessageId: string) => `a_${userMessageId}`;

export interface ThreadHistory {
  readonly messages: readonly Message[];
  readonly open: readonly Interrupt[];
  readonly state: Readonly<Record<string, unknown>>;
}

/** Converts a thread to UI messages: one for each user message, and one for all messages that answer it. */
export function historyOf({ messages, open, state }: ThreadHistory): UIMessage[] {
  const history: UIMessage[] = [];
  const results = new Map(
    messages.flatMap((message) =>
      message.role === "tool" ? [[message.tool_call_id, message] as const] : [],
    ),
  );
  let answerId = answerIdOf("start");
  for (const message of messages) {
    if (message.role === "tool") continue;
    if (message.role !== "assistant") {
      if (message.role === "user") answerId = answerIdOf(message.id);
      history.push({ id: message.id, role: message.role, parts: uiPartsOf(message.content) });
      continue;
    }
    const last = history.at(-1);
    const answer = last?.role === "assistant" ? last : { id: answerId, role: message.role, parts: [] };
    if (answer !== last) history.push(answer);
    answer.parts.push({ type: "step-start" });
    for (const { text } of message.reasoning ?? [])
      answer.parts.push({ type: "reasoning", text, state: "done" });
    if (message.content) answer.parts.push({ type: "text", text: message.content, state: "done" });
    answer.parts.push(...sourceParts(message.id, message));
    for (const { id, name, args } of message.tool_calls ?? [])
      answer.parts.push(...toolParts({ id, name, args }, results.get(id), open));
  }
  const last = history.findLast(({ role }) => role === "assistant");
  const todos = shownTodos(state.todos);
  if (last && todos.length > 0) last.parts.push({ type: "data-todos", id: "todos", data: todos });
  const files = shownFiles(state.files);
  if (last && Object.keys(files).length > 0)
    last.parts.push({ type: "data-files", id: "files", data: files });
  return history;
}

/** Does the same for clients without approvals, by turning open questions into text. */
export function askingInWords(history: readonly UIMessage[], open: readonly Interrupt[]): UIMessage[] {
  const partsOf = (part: UIPart): UIPart[] => {
    const { approval } = ToolPart.safeParse(part).data ?? {};
    const asked = open.find(({ id }) => id === approval?.id);
    if (!asked) return [part];
    const { approval: _, ...rest } = part;
    return [
      { ...rest, state: "input-available" },
      { type: "text", text: approvalText(asked), state: "done" },
    ];
  };
  return history.map((message) => ({ ...message, parts: message.parts.flatMap(partsOf) }));
}

/** Returns a message's content as the parts of a UI message. */
export function uiPartsOf(content: Content): UIPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return content.map((part) => {
    if (part.type === "text") return { type: "text", text: part.text };
    const { media_type: mediaType, data } = part;
    const name = part.type === "file" ? part.name : undefined;
    return {
      type: "file",
      mediaType,
      url: `data:${mediaType};base64,${data}`,
      ...(name ? { filename: name } : {}),
    };
  });
}

/** Returns the pages that a result or an answer is based on. `id` is the id of its call or its message. */
export const sourceParts = (
  id: string,
  { sources = [] }: Pick<ToolMessage, "sources">,
): (UIPart & { type: string })[] =>
  sources.map(({ url, title }, index) => ({
    type: "source-url",
    sourceId: `${id}:${index}`,
    url,
    ...(title === undefined ? {} : { title }),
  }));

function toolParts(
  { id, name, args }: { id: string; name: string; args: unknown },
  result: ToolMessage | undefined,
  open: readonly Interrupt[],
): UIPart[] {
  const part = { type: "dynamic-tool", toolCallId: id, toolName: name, input: args };
  const ours = { ...part, providerExecuted: true };
  if (result?.error !== undefined) return [{ ...ours, state: "output-error", errorText: resultText(result) }];
  if (result)
    return [
      { ...ours, state: "output-available", output: textOf(result.content) },
      ...sourceParts(id, result),
    ];
  const questions = open.filter(({ call_id }) => call_id === id);
  const approval = questions.find(({ kind }) => asksToApprove(kind));
  // A subagent's question has its own part, next to the call that delegates.
  const others = questions
    .filter(({ kind, asked_by }) => asked_by && !asksToApprove(kind))
    .map((each) => ({
      type: "dynamic-tool",
      toolCallId: each.id,
      toolName: each.name,
      input: each.args,
      state: "input-available",
    }));
  if (approval)
    return [
      {
        ...ours,
        ...(approval.asked_by ? {} : { input: approval.args }),
        state: "approval-requested",
        approval: { id: approval.id },
      },
      ...others,
    ];
  const isForClient = questions.some(({ asked_by }) => !asked_by);
  return [{ ...(isForClient ? part : ours), state: "input-available" }, ...others];
}
