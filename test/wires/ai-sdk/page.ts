// A page with the AI SDK's own client, `Chat` of `useChat`.

import { Chat } from "@ai-sdk/react";
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from "ai";
import type { Script, Turn } from "../../../src/agent/models/scripted.ts";
import { startServer } from "../../support/server.ts";
import { until } from "../../support/until.ts";
import { FILE_AGENTS } from "../agents.ts";

const whenAnswered = (options: { messages: UIMessage[] }) =>
  lastAssistantMessageIsCompleteWithApprovalResponses(options) ||
  lastAssistantMessageIsCompleteWithToolCalls(options);

export interface PageOptions {
  id?: string;
  messages?: UIMessage[];
  query?: string;
  body?: object;
}

/** A page with `useChat` on it. */
export function page(url: string, { id = "chat1", messages = [], query = "", body }: PageOptions = {}) {
  const calls: string[] = [];
  const chat = new Chat({
    id,
    messages,
    transport: new DefaultChatTransport({
      api: `${url}/ai-sdk/assistant/chat${query}`,
      ...(body ? { body } : {}),
    }),
    sendAutomaticallyWhen: whenAnswered,
    onToolCall: ({ toolCall }) => {
      calls.push(toolCall.toolName);
    },
  });
  return { chat, calls };
}

export const history = async (url: string, id = "chat1") =>
  (await (await fetch(`${url}/ai-sdk/assistant/chat/${id}/messages`)).json()) as UIMessage[];

export async function started(script: readonly Turn[] | Script, options: PageOptions = {}) {
  const { url } = await startServer({ script, agents: FILE_AGENTS });
  return { url, ...page(url, options) };
}

export const textOf = (message: UIMessage | undefined) =>
  message?.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("|");
export const toolsOf = (message: UIMessage | undefined) =>
  message?.parts.flatMap((part) => (part.type === "dynamic-tool" ? [part] : [])) ?? [];

/** What a reader sees of messages: the same when they are streamed and when they are read later. */
export const essence = (messages: readonly UIMessage[]) =>
  messages.map(({ id, role, parts }) => ({
    id,
    role,
    parts: parts.map((part) => {
      if (part.type === "text" || part.type === "reasoning") return { type: part.type, text: part.text };
      if (part.type === "dynamic-tool")
        return { name: part.toolName, state: part.state, input: part.input, output: part.output };
      return "data" in part ? { type: part.type, data: part.data } : { type: part.type };
    }),
  }));

/** Resolves when the request that the answer causes is over. */
export async function answered(chat: Chat<UIMessage>, answer: () => unknown): Promise<void> {
  const before = chat.lastMessage?.parts.length ?? 0;
  await answer();
  await until(() => chat.status === "ready" && (chat.lastMessage?.parts.length ?? 0) > before);
}
