// UI messages in: what the user said, the answers in an assistant message's parts, the client's tools. And out: the history.

import { z } from "zod";
import { AppError } from "../../../core/errors.ts";
import { type Content, type Message, Part, type ToolMessage, textOf } from "../../../core/message.ts";
import type { ClientTool } from "../../../core/records.ts";
import { boundedList, boundedMap } from "../../../lib/bounded-schemas.ts";
import { check, sentence } from "../../../lib/check.ts";
import type { Answer, Interrupt } from "../../../protocol/interrupt.ts";
import { clientToolsOf } from "../client-tools.ts";
import { readDataUrl } from "../messages.ts";
import { resultText, shownFiles, shownTodos } from "../shown.ts";
import { approvalText } from "../words.ts";

const UIPart = z.looseObject({ type: z.string() });
type UIPart = z.infer<typeof UIPart>;

export const UIMessage = z.looseObject({
  id: z.string().max(256).optional(),
  role: z.enum(["system", "user", "assistant"]),
  parts: boundedList(UIPart, 10_000).default([]),
});
export type UIMessage = z.infer<typeof UIMessage>;

export const ChatBody = z.looseObject({
  id: z.string().min(1).max(1024).describe("The chat: it names the thread."),
  messages: boundedList(UIMessage, 10_000).default([]),
  message: UIMessage.optional().describe("Only the newest message, for pages that do not send the list."),
  trigger: z.enum(["submit-message", "regenerate-message"]).default("submit-message"),
  messageId: z.string().nullish(),
  tools: boundedMap(
    z.string().max(256),
    z.looseObject({ description: z.string().default(""), parameters: z.unknown().optional() }),
    64,
  ).optional(),
});
export type ChatBody = z.infer<typeof ChatBody>;

/** What a user's message says. Throws `invalid_request` when there is nothing in it, or a file that is no `data:` URL. */
export function contentOf({ parts }: UIMessage): Content {
  const content = parts.flatMap(partOf);
  const [first] = content;
  if (!first) throw new AppError("invalid_request", "messages: the user's message is empty.");
  return content.length === 1 && first.type === "text" ? first.text : content;
}

function partOf(part: UIPart): Part[] {
  const { type, text, mediaType, url, filename: name } = part;
  if (type === "text" && typeof text === "string") return text === "" ? [] : [{ type, text }];
  const isFile = type === "file" && typeof mediaType === "string" && typeof url === "string";
  if (!isFile || !(name === undefined || typeof name === "string")) return [];
  const { media_type, data } = readDataUrl(url);
  const isImage = /^image\/(png|jpeg|gif|webp)$/.test(media_type);
  const checked = check(
    Part,
    isImage
      ? { type: "image", media_type, data }
      : { type: "file", media_type, data, ...(name ? { name } : {}) },
  );
  if ("value" in checked) return [checked.value];
  throw new AppError(
    "invalid_request",
    `messages: a file of type \`${media_type}\`: ${checked.faults.map((fault) => sentence(fault)).join(", ")}.`,
  );
}

/** The tools that the page carries out. */
export function clientTools({ tools = {} }: ChatBody): ClientTool[] | undefined {
  const described = Object.entries(tools).map(([name, tool]) => ({ name, ...tool }));
  return clientToolsOf(
    described,
    (index, fault) => new AppError("invalid_request", `tools: \`${described[index]?.name}\` ${fault}.`),
  );
}

const ToolPart = z.looseObject({
  toolCallId: z.string(),
  state: z.string(),
  output: z.unknown().optional(),
  errorText: z.string().optional(),
  approval: z
    .looseObject({ id: z.string(), approved: z.boolean().optional(), reason: z.string().optional() })
    .optional(),
});

/** The answers that the parts of an assistant message give to the thread's open questions. */
export function answersIn({ parts }: UIMessage, open: readonly Interrupt[]): Answer[] {
  // Most parts are no calls, and what does not fit takes long to check.
  const calls = parts.filter(
    ({ toolCallId, state }) => typeof toolCallId === "string" && typeof state === "string",
  );
  const given = calls.flatMap((part) => ToolPart.safeParse(part).data ?? []);
  return open.flatMap((interrupt) => {
    const { id, call_id, kind, asked_by } = interrupt;
    const part =
      kind === "approval"
        ? given.find(({ approval }) => approval?.id === id)
        : given.find(({ toolCallId }) => toolCallId === (asked_by ? id : call_id));
    const answer = part && answerOf(part, interrupt);
    return answer ? [answer] : [];
  });
}

function answerOf(
  { state, approval, output, errorText }: z.infer<typeof ToolPart>,
  { id, kind }: Interrupt,
): Answer | undefined {
  if (kind === "approval") {
    if (approval?.approved === undefined) return undefined;
    if (approval.approved) return { id, decision: "approve" };
    return { id, decision: "deny", ...(approval.reason ? { message: approval.reason } : {}) };
  }
  if (state === "output-available") {
    const message = typeof output === "string" ? output : JSON.stringify(output ?? null);
    return { id, decision: "respond", message };
  }
  return state === "output-error" ? { id, decision: "deny", message: errorText ?? "It failed." } : undefined;
}

/** The id of the assistant message that answers this message of the user. */
export const answerIdOf = (userMessageId: string) => `a_${userMessageId}`;

export interface History {
  readonly messages: readonly Message[];
  readonly open: readonly Interrupt[];
  readonly state: Readonly<Record<string, unknown>>;
}

/** A thread as UI messages: one for each message of the user, one for all that answers it. */
export function historyOf({ messages, open, state }: History): UIMessage[] {
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

/** The same for clients that know no approvals: what waits is asked in words. */
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

/** A message's content as the parts of a UI message. */
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

function toolParts(
  { id, name, args }: { id: string; name: string; args: unknown },
  result: ToolMessage | undefined,
  open: readonly Interrupt[],
): UIPart[] {
  const part = { type: "dynamic-tool", toolCallId: id, toolName: name, input: args };
  const ours = { ...part, providerExecuted: true };
  if (result?.error !== undefined) return [{ ...ours, state: "output-error", errorText: resultText(result) }];
  if (result) return [{ ...ours, state: "output-available", output: textOf(result.content) }];
  const questions = open.filter(({ call_id }) => call_id === id);
  const approval = questions.find(({ kind }) => kind === "approval");
  // A subagent's question has a part of its own beside the call that delegates.
  const others = questions
    .filter(({ kind, asked_by }) => asked_by && kind !== "approval")
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
