// Extracts the text to check from messages and calls, and removes refused user messages from requests to the model.

import {
  type AssistantMessage,
  callsByUsers,
  type Message,
  type SystemMessage,
  type ToolCall,
  type ToolMessage,
  textOf,
  type UserMessage,
} from "../../core/message.ts";
import type { SystemBlock } from "../../core/model.ts";
import type { Tool } from "../../core/tool.ts";

export type Stage = "input" | "output" | "tool_args";

export interface Subject {
  /** The texts to check against every rule, one by one. */
  readonly texts: readonly string[];
  /** The texts to check only against denials, such as reasoning, because they may accompany an allowed text. */
  readonly asides: readonly string[];
  /** The text for the judge. Empty if nothing needs to be checked. */
  readonly whole: string;
}

/** User-controlled content: messages, and skills, which users may store in their files. */
type FromOutside = UserMessage | SystemMessage | ToolMessage;
const isFromOutside = (message: Message): message is FromOutside =>
  message.role === "user" ||
  message.role === "system" ||
  (message.role === "tool" && message.name === "load_skill");

/** True if a model wrote the message. Calls that a user made are user input. */
const isFromModel = (message: Message): message is AssistantMessage =>
  message.role === "assistant" && !message.by_user;

/** True if a user made the most recent calls. */
export function areByUser(messages: readonly Message[]): boolean {
  const newest = messages.findLast(({ role }) => role === "assistant");
  return newest !== undefined && !isFromModel(newest);
}

/**
 * Returns all unanswered input as one string, so splitting it across messages or parts cannot hide anything.
 */
export function newInput(messages: readonly Message[]): Subject {
  const unanswered = messages.slice(messages.findLastIndex(isFromModel) + 1);
  const input = unanswered.filter(isFromOutside);
  const calls = callsOf(callsByUsers(unanswered));
  const written = input.filter(({ role }) => role !== "tool").map(({ content }) => content);
  const whole = written.map(textOf).join("\n");
  const parts = written.filter((content) => typeof content !== "string");
  const names = parts.flatMap((content) =>
    content.flatMap((part) => ("name" in part ? [part.name ?? ""] : [])),
  );
  const glued = parts.map((content) =>
    content.map((part) => (part.type === "text" ? part.text : "")).join(""),
  );
  const skills = input
    .filter(({ role }) => role === "tool")
    .flatMap(({ content }) => paragraphs(textOf(content)));
  return {
    texts: [whole],
    asides: [...names, ...glued, ...calls.texts, ...skills],
    whole: [whole, ...names, calls.whole].join("\n").trim(),
  };
}

/**
 * Returns the texts of the tools that the client sent with a run. The model reads their names, descriptions
 * and parameters.
 */
export function clientToolsIn(tools: Iterable<Tool>): Subject {
  const asides = [...tools]
    .filter(({ fromClient }) => fromClient)
    .map(({ name, description, parameters }) => linesOf({ name, description, parameters }));
  return { texts: [], asides, whole: asides.join("\n\n") };
}

/**
 * Returns the texts of the skills in the system prompt, including skills that are only listed there. Only
 * rules check them, because a judge would have to read them with every message.
 */
export function skillsIn(system: readonly SystemBlock[]): Subject {
  const blocks = system.filter(({ id }) => id === "skills" || id === "available_skills");
  return { texts: [], asides: blocks.flatMap(({ text }) => paragraphs(text)), whole: "" };
}

/** Splits long texts so that no part is too long for an expression to search. */
const paragraphs = (text: string) => text.split(/\n\s*\n/);

export function wordsOf({ content, reasoning = [] }: AssistantMessage): Subject {
  const asides = reasoning.map(({ text }) => text);
  return { texts: [content], asides, whole: [...asides, content].join("\n\n").trim() };
}

export function callsOf(calls: readonly ToolCall[]): Subject {
  const texts = calls.map(({ args, malformed }) => malformed ?? linesOf(args));
  const whole = calls.map(({ name }, index) => `Tool ${name}\n${texts[index]}`).join("\n\n");
  return { texts, asides: [], whole };
}

/** Formats the members as one `key: value` per line. */
function linesOf(members: Readonly<Record<string, unknown>>): string {
  const lines: string[] = [];
  const left: [string, unknown][] = Object.entries(members);
  // The list grows during the loop, so deep nesting needs no recursion.
  for (const [key, value] of left) {
    const isNested = typeof value === "object" && value !== null;
    lines.push(isNested ? `${key}:` : `${key}: ${String(value)}`);
    if (Array.isArray(value)) for (const each of value) left.push([key, each]);
    else if (isNested) for (const inner of Object.entries(value)) left.push(inner);
  }
  return lines.join("\n");
}

/** Returns the model name of a refusal, which marks refused input in the thread. */
export const authorOf = (stage: Stage) => `guardrails:${stage}`;

const isRefusalOfInput = (message: Message) =>
  message.role === "assistant" && message.model === authorOf("input");

/**
 * Replaces refused user messages, refused skills and the results of users' refused calls with a placeholder.
 * Removes the arguments of these calls.
 */
export function withoutRefused(messages: readonly Message[]): readonly Message[] {
  if (!messages.some(isRefusalOfInput)) return messages;
  let refused = false;
  const called = new Set(callsByUsers(messages).map(({ id }) => id));
  const isResult = (message: Message) => message.role === "tool" && called.has(message.tool_call_id);
  return messages
    .toReversed()
    .map((message) => {
      if (isFromModel(message)) refused = isRefusalOfInput(message);
      if (!refused) return message;
      if (message.role === "assistant") return message.by_user ? withoutArguments(message) : message;
      return isFromOutside(message) || isResult(message) ? { ...message, content: NOT_SHOWN } : message;
    })
    .reverse();
}

const withoutArguments = ({ tool_calls = [], ...message }: AssistantMessage): AssistantMessage => ({
  ...message,
  tool_calls: tool_calls.map((call) => ({ ...call, args: {} })),
});

const NOT_SHOWN = "[This message was refused and is not shown.]";
