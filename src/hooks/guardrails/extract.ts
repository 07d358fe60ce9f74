// Extracts the text to check from messages and calls, and removes refused user messages from what the model is shown.

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
  /** Checked against every rule, one by one. */
  readonly texts: readonly string[];
  /** Reasoning is checked against denials only: it may mention what the answer does not. */
  readonly thoughts: readonly string[];
  /** For the judge; empty when there is nothing to check. */
  readonly whole: string;
}

type FromOutside = UserMessage | SystemMessage;
const isFromOutside = (message: Message): message is FromOutside =>
  message.role === "user" || message.role === "system";

/** All unanswered input together, so that splitting it over messages hides nothing. */
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

/** One `key: value` per line. */
function argumentsOf({ args, malformed }: ToolCall): string {
  if (malformed !== undefined) return malformed;
  const lines: string[] = [];
  const left: [string, unknown][] = Object.entries(args);
  // The list grows during the loop, so deep nesting needs no recursion.
  for (const [key, value] of left) {
    const isNested = typeof value === "object" && value !== null;
    lines.push(isNested ? `${key}:` : `${key}: ${String(value)}`);
    if (Array.isArray(value)) for (const each of value) left.push([key, each]);
    else if (isNested) for (const inner of Object.entries(value)) left.push(inner);
  }
  return lines.join("\n");
}

/** The model name of a refusal, by which the thread marks refused input. */
export const authorOf = (stage: Stage) => `guardrails:${stage}`;

const isRefusalOfInput = (message: Message) =>
  message.role === "assistant" && message.model === authorOf("input");

/** Hides refused user messages. */
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
