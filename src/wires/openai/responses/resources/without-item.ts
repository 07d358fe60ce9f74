// Deletes an item of a conversation by computing the thread's messages without it.

import type { AssistantMessage, Message } from "../../../../agent/core/message.ts";
import { type Item, reasoningIdOf } from "../history.ts";

/**
 * Returns the messages without one of their items. A call is deleted with its result, and an answer with its reasoning.
 */
export function withoutItem(messages: readonly Message[], item: Item): Message[] {
  const { id, type } = item;
  const call = CALL_ITEM.exec(id)?.groups?.call;
  if (type === "function_call_output") return messages.filter((each) => `fco_${each.id}` !== id);
  if (type === "message") return messages.flatMap((each) => (each.id === id ? withoutText(each) : [each]));
  if (type === "reasoning") return messages.map((each) => withoutThought(each, id));
  const at = messages.findLastIndex((each) => each.role === "assistant" && hasCall(each, call));
  return messages.flatMap((each, index) => {
    if (each.role === "tool" && each.tool_call_id === call && index > at) return [];
    return index === at && each.role === "assistant" ? withoutCall(each, call) : [each];
  });
}

const CALL_ITEM = /^(?:fc|mcp)_(?<call>.+)$/s;

const hasCall = ({ tool_calls = [] }: AssistantMessage, call: string | undefined) =>
  tool_calls.some(({ id }) => id === call);

const withoutText = (message: Message): Message[] =>
  message.role === "assistant" && message.tool_calls ? [{ ...message, content: "" }] : [];

function withoutThought(message: Message, id: string): Message {
  if (message.role !== "assistant" || !message.reasoning) return message;
  let shown = 0;
  const reasoning = message.reasoning.filter(
    ({ text }) => !text || reasoningIdOf(message.id, shown++) !== id,
  );
  return reasoning.length === message.reasoning.length ? message : { ...message, reasoning };
}

function withoutCall({ tool_calls = [], ...message }: AssistantMessage, call: string | undefined): Message[] {
  const others = tool_calls.filter(({ id }) => id !== call);
  if (others.length > 0) return [{ ...message, tool_calls: others }];
  return message.content ? [message] : [];
}
