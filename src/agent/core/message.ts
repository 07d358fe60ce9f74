// Functions that create, filter, validate, measure and print messages and lists of messages.

import { isoTime } from "../../lib/iso-time.ts";
import { LARGE_BYTES } from "../../lib/ticks.ts";
import {
  type AssistantMessage,
  type Content,
  type Message,
  type Part,
  type ProviderBlock,
  Role,
  type SystemMessage,
  type ToolCall,
  type ToolMessage,
  type Usage,
  type UserMessage,
} from "../../protocol/message.ts";
import { typedByBytes } from "./media-type.ts";
import { newMessageId } from "./new-ids.ts";

export * from "../../protocol/message.ts";

export const NO_USAGE: Usage = {
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
};

export function addUsage(a: Usage, b: Usage): Usage {
  const hasCost = a.cost !== undefined || b.cost !== undefined;
  return {
    input_tokens: a.input_tokens + b.input_tokens,
    output_tokens: a.output_tokens + b.output_tokens,
    cache_read_tokens: a.cache_read_tokens + b.cache_read_tokens,
    cache_write_tokens: a.cache_write_tokens + b.cache_write_tokens,
    ...searchesOf((a.web_searches ?? 0) + (b.web_searches ?? 0)),
    ...(hasCost ? { cost: (a.cost ?? 0) + (b.cost ?? 0) } : {}),
    ...(a.estimated || b.estimated ? { estimated: true } : {}),
  };
}

/** Returns the number of searches as a part of the usage, or nothing if no search was made. */
export const searchesOf = (count: number): Pick<Usage, "web_searches"> =>
  count > 0 ? { web_searches: count } : {};

/** Adds the fraction of the input that the provider read from its cache. */
export function withHitRatio<U extends Usage>(usage: U): U {
  const { input_tokens, cache_read_tokens } = usage;
  return input_tokens > 0 ? { ...usage, cache_hit_ratio: cache_read_tokens / input_tokens } : usage;
}

const stamp = () => ({ id: newMessageId(), created_at: isoTime() });

export function systemMessage(content: Content): SystemMessage {
  return { ...stamp(), role: "system", content };
}

export function userMessage(content: Content): UserMessage {
  return { ...stamp(), role: "user", content: typedByBytes(content) };
}

export function assistantMessage(content: string, ...toolCalls: ToolCall[]): AssistantMessage {
  return {
    ...stamp(),
    role: "assistant",
    content,
    ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
  };
}

/** Returns the result message of `call`, with `error` only if the call failed. */
export function toolMessage(
  call: Pick<ToolCall, "id" | "name">,
  content: Content,
  error?: string,
): ToolMessage {
  return {
    ...stamp(),
    role: "tool",
    content: typedByBytes(content),
    tool_call_id: call.id,
    name: call.name,
    ...(error === undefined ? {} : { error }),
  };
}

/** Returns the content as text. Images and files appear as `[media type]`. */
export function textOf(content: Content): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : `[${part.media_type}]`)).join("\n");
}

/** A chainable builder: `conversation().user("2+2?").assistant("4").messages`. */
export interface Conversation {
  readonly messages: readonly Message[];
  system(content: Content): Conversation;
  user(content: Content): Conversation;
  assistant(content: string, ...toolCalls: ToolCall[]): Conversation;
  tool(callId: string, name: string, output: Content, error?: string): Conversation;
}

export function conversation(messages: readonly Message[] = []): Conversation {
  const link = (message: Message) => conversation([...messages, message]);
  return {
    messages,
    system: (content) => link(systemMessage(content)),
    user: (content) => link(userMessage(content)),
    assistant: (content, ...toolCalls) => link(assistantMessage(content, ...toolCalls)),
    tool: (id, name, output, error) => link(toolMessage({ id, name }, output, error)),
  };
}

export const byRole = (messages: readonly Message[], role: Role) => messages.filter((m) => m.role === role);
export const systemMessages = (messages: readonly Message[]) =>
  messages.filter((m): m is SystemMessage => m.role === "system");
export const userMessages = (messages: readonly Message[]) =>
  messages.filter((m): m is UserMessage => m.role === "user");
export const assistantMessages = (messages: readonly Message[]) =>
  messages.filter((m): m is AssistantMessage => m.role === "assistant");
export const toolMessages = (messages: readonly Message[]) =>
  messages.filter((m): m is ToolMessage => m.role === "tool");

/** Returns the text of the last message, or an empty string for an empty list. */
export function lastContent(messages: readonly Message[]): string {
  const last = messages.at(-1);
  return last ? textOf(last.content) : "";
}

export const isRole = (role: string): role is Role => Role.safeParse(role).success;
/** True for the roles that callers may send. */
export const isUserInputRole = (role: string): role is "user" | "system" =>
  role === "user" || role === "system";

/** Returns one sentence per fault in a list of messages, and an empty list if the messages are valid. */
export function validate(messages: readonly Message[]): string[] {
  return messages.flatMap((message, index) => faults(message).map((fault) => `messages[${index}]: ${fault}`));
}

/**
 * Like `validate`, for messages from users. Requires at least one message, and allows only the roles `user`
 * and `system`.
 */
export function validateUserInput(messages: readonly Message[]): string[] {
  if (messages.length === 0) return ["messages: must contain at least one message"];
  const roles = messages.flatMap(({ role }, index) =>
    isUserInputRole(role) ? [] : [`messages[${index}]: role \`${role}\` may not be sent; use user or system`],
  );
  return [...roles, ...validate(messages)];
}

function faults(message: Message): string[] {
  if (!isRole(message.role)) return [`unknown role \`${String((message as { role: unknown }).role)}\``];
  switch (message.role) {
    case "system":
    case "user":
      return isBlank(message.content) ? ["content must not be empty"] : [];
    case "tool":
      return [
        ...(message.tool_call_id ? [] : ["a tool message needs tool_call_id"]),
        ...(message.name ? [] : ["a tool message needs name"]),
      ];
    case "assistant": {
      const calls = message.tool_calls ?? [];
      if (isBlank(message.content) && calls.length === 0)
        return ["an assistant message needs content or tool_calls"];
      return calls.flatMap((call, index) => [
        ...(call.id ? [] : [`tool_calls[${index}] needs an id`]),
        ...(call.name ? [] : [`tool_calls[${index}] needs a name`]),
      ]);
    }
  }
}

export function isBlank(content: Content): boolean {
  if (typeof content === "string") return content.trim() === "";
  return content.every((part) => part.type === "text" && part.text.trim() === "");
}

/**
 * Providers count an image by its pixels, regardless of the size of its data. An image costs at most about
 * 1,600 tokens.
 */
const IMAGE_CHARACTERS = 6400;

/** Returns the number of UTF-8 bytes. A token takes about four bytes in most languages. */
export const textSize = (text: string) => Buffer.byteLength(text);
export const BYTES_A_TOKEN = 4;

/** Estimates the tokens of content, arguments and reasoning. */
export function estimateTokens(messages: readonly Message[]): number {
  let bytes = 0;
  for (const message of messages) bytes += sizeOf(message);
  return Math.ceil(bytes / BYTES_A_TOKEN);
}

function sizeOf(message: Message): number {
  let size = 0;
  if (typeof message.content === "string") size = textSize(message.content);
  else for (const part of message.content) size += sizeOfPart(part);
  if (message.role === "tool") size += textSize(message.error ?? "");
  if (message.role !== "assistant") return size;
  for (const call of message.tool_calls ?? [])
    size += textSize(call.name) + textSize(call.malformed ?? JSON.stringify(call.args));
  for (const block of message.reasoning ?? []) size += textSize(block.text);
  return size + blocksSize(message.provider_blocks);
}

const blockSizes = new WeakMap<readonly ProviderBlock[], number>();

/**
 * Returns the size of a provider's blocks as JSON, in bytes. It is measured once, because blocks are long and
 * never change.
 */
function blocksSize(blocks: readonly ProviderBlock[] | undefined): number {
  if (!blocks) return 0;
  const size = blockSizes.get(blocks) ?? textSize(JSON.stringify(blocks));
  blockSizes.set(blocks, size);
  return size;
}

function sizeOfPart(part: Part): number {
  if (part.type === "text") return textSize(part.text);
  return part.type === "image" ? Math.min(part.data.length, IMAGE_CHARACTERS) : part.data.length;
}

/**
 * True if serializing the messages would block the event loop, or if their JSON has more than about `most`
 * bytes.
 */
export function areLong(messages: readonly Message[], most = LARGE_BYTES): boolean {
  let length = 0;
  for (const message of messages) {
    length += lengthOf(message);
    if (length > most) return true;
  }
  return false;
}

/** Returns the approximate length of the messages as JSON. */
export const lengthOfAll = (messages: readonly Message[]) =>
  messages.reduce((length, message) => length + lengthOf(message), 0);

/** The approximate number of bytes of a message without its content: its id, role and time. */
const FRAME_BYTES = 100;

function lengthOf(message: Message): number {
  const { content } = message;
  if (typeof content === "string")
    return (
      FRAME_BYTES + content.length + (message.role === "assistant" ? blocksSize(message.provider_blocks) : 0)
    );
  return content.reduce(
    (sum, part) => sum + (part.type === "text" ? part.text : part.data).length,
    FRAME_BYTES,
  );
}

const MANY = 8;

function knownIn(thread: readonly Message[]): (id: string) => boolean {
  const ids = new Set(thread.map(({ id }) => id));
  return (id) => ids.has(id);
}

/** Returns the messages that the thread does not contain yet. */
export function unknownTo<M extends Message>(thread: readonly Message[], messages: readonly M[]): M[] {
  // For a few messages, a search is cheaper than building a set of the ids of a long thread.
  const isKnown =
    messages.length > MANY ? knownIn(thread) : (id: string) => thread.some((own) => own.id === id);
  return messages.filter(({ id }) => !isKnown(id));
}

/** Returns the tool calls without a result, oldest first. The loop derives its next step from them. */
export function unanswered(messages: readonly Message[]): ToolCall[] {
  const last = messages.findLastIndex((message) => message.role === "assistant");
  const assistant = messages[last];
  if (assistant?.role !== "assistant" || !assistant.tool_calls) return [];
  const answered = new Set(toolMessages(messages.slice(last + 1)).map((message) => message.tool_call_id));
  return assistant.tool_calls.filter((call) => !answered.has(call.id));
}

/** Returns the tool calls that users made to start runs. */
export const callsByUsers = (messages: readonly Message[]): ToolCall[] =>
  messages.flatMap((message) =>
    message.role === "assistant" && message.by_user ? (message.tool_calls ?? []) : [],
  );

/** Formats the conversation for people to read. */
export function prettyPrint(messages: readonly Message[]): string {
  return messages.map(printed).join("\n\n");
}

const TITLES = { system: "System", user: "Human", assistant: "AI" } as const;

function printed(message: Message): string {
  const title =
    message.role === "tool"
      ? `[Tool: ${message.name} (call_id=${message.tool_call_id})]`
      : `[${TITLES[message.role]}]`;
  const lines = [title];
  if (message.role === "assistant") {
    for (const call of message.tool_calls ?? [])
      lines.push(`  → tool_call: ${call.name}(id=${call.id}, args=${JSON.stringify(call.args)})`);
  }
  if (message.role === "tool" && message.error !== undefined) lines.push(`Error: ${message.error}`);
  if (!isBlank(message.content)) lines.push(textOf(message.content));
  return lines.join("\n");
}

/** True if a tool was called after the user's last message. */
export function hasCalledTools(messages: readonly Message[]): boolean {
  const since = messages.findLastIndex(({ role }) => role === "user") + 1;
  return messages
    .slice(since)
    .some((message) => message.role === "assistant" && message.tool_calls !== undefined);
}
