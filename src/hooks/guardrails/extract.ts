// What there is to check of users' words, of the model's and of its calls, as text; and what is shown of a
// thread with refusals in it.

import {
  type AssistantMessage,
  type Message,
  type SystemMessage,
  type ToolCall,
  textOf,
  type UserMessage,
} from "../../core/message.ts";

export type Stage = "input" | "output" | "tool_args";

export interface Subject {
  /** Held against every rule, each for itself. */
  readonly texts: readonly string[];
  /** A model's thinking: held against what is denied only, since it weighs what it does not say. */
  readonly thoughts: readonly string[];
  /** All of it, as a judge reads it; empty when there is nothing to check. */
  readonly whole: string;
}

type FromOutside = UserMessage | SystemMessage;
const isFromOutside = (message: Message): message is FromOutside =>
  message.role === "user" || message.role === "system";

/** What nobody has answered yet, taken together: nothing is hidden by saying it in two messages. */
export function newInput(messages: readonly Message[]): Subject {
  const since = messages.findLastIndex(({ role }) => role === "assistant");
  const whole = messages
    .slice(since + 1)
    .filter(isFromOutside)
    .map(({ content }) => textOf(content))
    .join("\n");
  return { texts: [whole], thoughts: [], whole };
}

export function wordsOf({ content, reasoning = [] }: AssistantMessage): Subject {
  const thoughts = reasoning.map(({ text }) => text);
  return { texts: [content], thoughts, whole: [...thoughts, content].join("\n\n").trim() };
}

export function callsOf(calls: readonly ToolCall[]): Subject {
  const texts = calls.map(argumentsOf);
  const whole = calls.map(({ name }, index) => `Tool ${name}\n${texts[index]}`).join("\n\n");
  return { texts, thoughts: [], whole };
}

/** Each value behind its key, on a line of its own: `path: /etc/passwd`. */
function argumentsOf({ args, malformed }: ToolCall): string {
  if (malformed !== undefined) return malformed;
  const lines: string[] = [];
  const left: [string, unknown][] = Object.entries(args);
  // The list grows while it is read: a model may nest as deep as it likes.
  for (const [key, value] of left) {
    const isNested = typeof value === "object" && value !== null;
    lines.push(isNested ? `${key}:` : `${key}: ${String(value)}`);
    if (Array.isArray(value)) for (const each of value) left.push([key, each]);
    else if (isNested) for (const inner of Object.entries(value)) left.push(inner);
  }
  return lines.join("\n");
}

/** The author of a refusal, as its message names it: by this the thread itself remembers what was refused. */
export const authorOf = (stage: Stage) => `guardrails:${stage}`;

const isRefusalOfInput = (message: Message) =>
  message.role === "assistant" && message.model === authorOf("input");

/** The conversation without the words of users that were refused. */
export function withoutRefused(messages: readonly Message[]): readonly Message[] {
  if (!messages.some(isRefusalOfInput)) return messages;
  let refused = false;
  return messages
    .toReversed()
    .map((message) => {
      if (message.role === "assistant") refused = isRefusalOfInput(message);
      return refused && isFromOutside(message) ? { ...message, content: NOT_SHOWN } : message;
    })
    .reverse();
}

const NOT_SHOWN = "[This message was refused and is not shown.]";
