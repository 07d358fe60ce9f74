// How large a request is.

import type { Message } from "../../core/message.ts";
import { estimateTokens, toolMessages } from "../../core/messages.ts";
import type { ModelRequest } from "../../core/model.ts";
import type { View } from "./view.ts";

/**
 * What the provider counted for the newest answer, plus an estimate of what came since; else an estimate of
 * all. That answer may have been given to a request with shortened tool results: a count far below what
 * they hold is not believed.
 */
export function countTokens(view: View, request: ModelRequest): number {
  const at = view.measured.findLastIndex((message) => counted(message) > 0);
  const answer = view.measured[at];
  if (!answer) return estimateRequest({ ...request, messages: view.messages });
  const least = estimateTokens(toolMessages(view.tail)) / 2;
  return Math.max(least, counted(answer) + estimateTokens(view.measured.slice(at + 1)));
}

function counted(message: Message): number {
  const usage = message.role === "assistant" ? message.usage : undefined;
  return usage && usage.input_tokens > 0 ? usage.input_tokens + usage.output_tokens : 0;
}

/** A quarter of all characters: messages, system prompt and tool schemas. */
export function estimateRequest({ messages, system, tools }: ModelRequest): number {
  const fixed = system.map((block) => block.text).join("").length + JSON.stringify(tools).length;
  return estimateTokens(messages) + Math.ceil(fixed / 4);
}
