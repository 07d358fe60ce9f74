// Messages: what a thread is made of. Stored, sent and shown in exactly this shape.

import { z } from "zod";
import { newMessageId } from "./ids.ts";

export const Role = z.enum(["system", "user", "assistant", "tool"]);
export type Role = z.infer<typeof Role>;

const TextPart = z.strictObject({ type: z.literal("text"), text: z.string().min(1) });
const ImagePart = z.strictObject({
  type: z.literal("image"),
  media_type: z.enum(["image/png", "image/jpeg", "image/gif", "image/webp"]),
  data: z.base64().min(1).describe("The image itself, in base64."),
});
const FilePart = z.strictObject({
  type: z.literal("file"),
  media_type: z.string().min(1),
  data: z.base64().min(1).describe("The file itself, in base64."),
  name: z.string().min(1).optional(),
});
export const Part = z.discriminatedUnion("type", [TextPart, ImagePart, FilePart]).meta({ id: "Part" });
export type Part = z.infer<typeof Part>;

export const Content = z.union([z.string(), z.array(Part)]);
export type Content = z.infer<typeof Content>;

export const ToolCall = z
  .object({
    id: z.string().describe("Given by the model. Every tool's idempotency key."),
    name: z.string(),
    args: z.record(z.string(), z.unknown()),
    malformed: z
      .string()
      .optional()
      .describe("The arguments as the model wrote them, when they were not a JSON object."),
  })
  .meta({ id: "ToolCall" });
export type ToolCall = z.infer<typeof ToolCall>;

/** One block of a model's thinking. `metadata` is the provider's (a signature), returned to it unread. */
export const Reasoning = z
  .object({ text: z.string(), metadata: z.record(z.string(), z.unknown()).optional() })
  .meta({ id: "Reasoning" });
export type Reasoning = z.infer<typeof Reasoning>;

/** Token counts of model calls. `input_tokens` includes the cached ones, whatever the provider's habit. */
export const Usage = z
  .object({
    input_tokens: z.int(),
    output_tokens: z.int(),
    cache_read_tokens: z.int(),
    cache_write_tokens: z.int(),
  })
  .meta({ id: "Usage" });
export type Usage = z.infer<typeof Usage>;

export const NO_USAGE: Usage = {
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
};

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    input_tokens: a.input_tokens + b.input_tokens,
    output_tokens: a.output_tokens + b.output_tokens,
    cache_read_tokens: a.cache_read_tokens + b.cache_read_tokens,
    cache_write_tokens: a.cache_write_tokens + b.cache_write_tokens,
  };
}

const identity = { id: z.string(), created_at: z.iso.datetime() };

export const SystemMessage = z.object({ ...identity, role: z.literal("system"), content: Content });
export const UserMessage = z.object({ ...identity, role: z.literal("user"), content: Content });
export const AssistantMessage = z.object({
  ...identity,
  role: z.literal("assistant"),
  content: z.string(),
  tool_calls: z.array(ToolCall).optional(),
  reasoning: z.array(Reasoning).optional(),
  model: z.string().optional().describe("provider:model that wrote it."),
  usage: Usage.optional(),
});
export const ToolMessage = z.object({
  ...identity,
  role: z.literal("tool"),
  content: Content.describe("The tool's output."),
  tool_call_id: z.string(),
  name: z.string(),
  error: z.string().optional().describe("Present only when the call failed."),
});

export const Message = z
  .discriminatedUnion("role", [SystemMessage, UserMessage, AssistantMessage, ToolMessage])
  .meta({ id: "Message" });
export type SystemMessage = z.infer<typeof SystemMessage>;
export type UserMessage = z.infer<typeof UserMessage>;
export type AssistantMessage = z.infer<typeof AssistantMessage>;
export type ToolMessage = z.infer<typeof ToolMessage>;
export type Message = z.infer<typeof Message>;

const stamp = () => ({ id: newMessageId(), created_at: new Date().toISOString() });

export function systemMessage(content: Content): SystemMessage {
  return { ...stamp(), role: "system", content };
}

export function userMessage(content: Content): UserMessage {
  return { ...stamp(), role: "user", content };
}

export function assistantMessage(content: string, ...toolCalls: ToolCall[]): AssistantMessage {
  return {
    ...stamp(),
    role: "assistant",
    content,
    ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
  };
}

/** The answer to `call`; `error` only when it failed. */
export function toolMessage(
  call: Pick<ToolCall, "id" | "name">,
  content: Content,
  error?: string,
): ToolMessage {
  return {
    ...stamp(),
    role: "tool",
    content,
    tool_call_id: call.id,
    name: call.name,
    ...(error === undefined ? {} : { error }),
  };
}

/** The text of a content; what is not text is named in brackets. */
export function textOf(content: Content): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : `[${part.media_type}]`)).join("\n");
}
