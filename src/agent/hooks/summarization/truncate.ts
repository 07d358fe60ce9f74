// Shortens long texts in messages to their beginning and their end.

import { firstChars, lastChars } from "../../../lib/text.ts";
import { type Content, type Message, prettyPrint, type ToolCall } from "../../core/message.ts";
import type { ModelRequest } from "../../core/model.ts";
import { estimateRequest } from "../../core/usage-meter.ts";

/** The number of characters to keep from a long text. The steps are tried in order until everything fits. */
const STEPS = [20_000, 4000, 1000, 250];
/** The number of characters to keep from file content in a write or edit. The file contains the rest. */
const MAX_WRITTEN = 2000;
/** The factor by which messages from people and models may be longer than tool results. */
const WORDS_BEFORE_TOOLS = 4;
const NOTE_CHARS = 50;
const WRITERS: ReadonlySet<string> = new Set(["write_file", "edit_file"]);

/** Removes the middle of `text`. Returns at most `limit` characters, including the note. */
export function clip(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const half = Math.max(0, Math.floor((limit - NOTE_CHARS) / 2));
  const [head, tail] = [firstChars(text, half), lastChars(text, half)];
  const omitted = text.length - head.length - tail.length;
  return `${head}\n[… ${omitted} characters left out …]\n${tail}`;
}

/** Shortens tool results until the request has at most `limit` tokens, as far as possible. */
export function fitted(request: ModelRequest, limit: number): ModelRequest {
  let smaller = request;
  for (const step of STEPS) {
    if (estimateRequest(smaller) <= limit) break;
    smaller = {
      ...request,
      messages: request.messages.map((message) => (message.role === "tool" ? short(message, step) : message)),
    };
  }
  return smaller;
}

/**
 * Returns the conversation as text with at most `limit` characters. Shortens tool results and arguments
 * first.
 */
export function transcript(messages: readonly Message[], limit: number): string {
  let text = "";
  for (const step of STEPS) {
    text = prettyPrint(messages.map((message) => short(message, step)));
    if (text.length <= limit) return text;
  }
  return clip(text, limit);
}

function short(message: Message, limit: number): Message {
  switch (message.role) {
    case "system":
    case "user":
      return { ...message, content: shortContent(message.content, limit * WORDS_BEFORE_TOOLS) };
    case "assistant": {
      const { tool_calls, content } = message;
      return {
        ...message,
        content: clip(content, limit * WORDS_BEFORE_TOOLS),
        ...(tool_calls ? { tool_calls: tool_calls.map((call) => shortCall(call, limit)) } : {}),
      };
    }
    case "tool": {
      const { error } = message;
      return {
        ...message,
        content: shortContent(message.content, limit),
        ...(error === undefined ? {} : { error: clip(error, limit) }),
      };
    }
  }
}

function shortContent(content: Content, limit: number): Content {
  if (typeof content === "string") return clip(content, limit);
  return content.map((part) => (part.type === "text" ? { ...part, text: clip(part.text, limit) } : part));
}

function shortCall(call: ToolCall, limit: number): ToolCall {
  const most = WRITERS.has(call.name) ? Math.min(limit, MAX_WRITTEN) : limit;
  const args = Object.entries(call.args).map(([name, value]) => [name, shortArg(value, most)]);
  return { ...call, args: Object.fromEntries(args) };
}

function shortArg(value: unknown, limit: number): unknown {
  if (typeof value === "string") return clip(value, limit);
  const text = JSON.stringify(value) ?? "";
  return text.length > limit ? clip(text, limit) : value;
}
