// Messages, stored and sent in exactly this form. Imports nothing from Node, because front ends use these types.

import { z } from "zod";

export const Role = z.enum(["system", "user", "assistant", "tool"]);
export type Role = z.infer<typeof Role>;

const TextPart = z.strictObject({ type: z.literal("text"), text: z.string().min(1) });
export const ImagePart = z.strictObject({
  type: z.literal("image"),
  media_type: z.enum(["image/png", "image/jpeg", "image/gif", "image/webp"]),
  data: z.base64().min(1).describe("The image, encoded in base64."),
});
const FilePart = z.strictObject({
  type: z.literal("file"),
  media_type: z.string().min(1),
  data: z.base64().min(1).describe("The file, encoded in base64."),
  name: z.string().min(1).optional(),
});
export const Part = z.discriminatedUnion("type", [TextPart, ImagePart, FilePart]).meta({ id: "Part" });
export type Part = z.infer<typeof Part>;

export const Content = z.union([z.string(), z.array(Part)]);
export type Content = z.infer<typeof Content>;

export const ToolCall = z
  .object({
    id: z.string().describe("Assigned by the model or the server. Tools use it as their idempotency key."),
    name: z.string(),
    args: z.record(z.string(), z.unknown()),
    malformed: z.string().optional().describe("The raw arguments, if the model did not write a JSON object."),
  })
  .meta({ id: "ToolCall" });
export type ToolCall = z.infer<typeof ToolCall>;

/**
 * A block of a model's reasoning. `metadata` belongs to the provider (for example, a signature) and is returned to it
 * unchanged.
 */
export const Reasoning = z
  .object({ text: z.string(), metadata: z.record(z.string(), z.unknown()).optional() })
  .meta({ id: "Reasoning" });
export type Reasoning = z.infer<typeof Reasoning>;

/** The usage of model calls. `input_tokens` includes cached tokens for every provider. */
export const Usage = z
  .object({
    input_tokens: z.int(),
    output_tokens: z.int(),
    cache_read_tokens: z.int(),
    cache_write_tokens: z.int(),
    web_searches: z
      .int()
      .optional()
      .describe("Web searches that the models' provider made. Absent if it made none."),
    cost: z
      .int()
      .optional()
      .describe("Cost in millionths of the currency. Absent if the models have no price."),
    estimated: z
      .literal(true)
      .optional()
      .describe(
        "True if part of the usage is an estimate, because a provider reported none or an answer ended early.",
      ),
    cache_hit_ratio: z
      .number()
      .optional()
      .describe(
        "Fraction of the input (0–1) that the provider read from its cache. Present only if the run or thread had input.",
      ),
  })
  .meta({ id: "Usage" });
export type Usage = z.infer<typeof Usage>;

/** A web page. */
export const WebSource = z
  .object({ url: z.string(), title: z.string().optional() })
  .meta({ id: "WebSource" });
export type WebSource = z.infer<typeof WebSource>;

/** A part of an answer that comes from a web page. */
export const Citation = WebSource.extend({
  start_index: z.int().describe("Position in `content` where the part begins."),
  end_index: z.int().describe("Position after its last character."),
}).meta({ id: "Citation" });
export type Citation = z.infer<typeof Citation>;

/** A block of a provider's own tool, with its place among the text, calls and reasoning of its message. */
export const ProviderBlock = z
  .object({
    data: z
      .record(z.string(), z.unknown())
      .describe("The block as the provider wrote it. Skein sends it back to the provider unchanged."),
    after_text: z.int().describe("Characters of `content` before the block."),
    after_calls: z.int().describe("Calls before the block."),
    after_thoughts: z.int().describe("Blocks of reasoning before the block."),
    characters: z
      .int()
      .optional()
      .describe(
        "Number of characters of `content` that make up the block's text. Only for a text with citations.",
      ),
  })
  .meta({ id: "ProviderBlock" });
export type ProviderBlock = z.infer<typeof ProviderBlock>;

const identity = { id: z.string(), created_at: z.iso.datetime() };

export const SystemMessage = z.object({ ...identity, role: z.literal("system"), content: Content });
export const UserMessage = z.object({ ...identity, role: z.literal("user"), content: Content });
export const AssistantMessage = z.object({
  ...identity,
  role: z.literal("assistant"),
  content: z.string(),
  tool_calls: z.array(ToolCall).optional(),
  reasoning: z.array(Reasoning).optional(),
  sources: z
    .array(WebSource)
    .optional()
    .describe("Web pages that the model's provider found while the model wrote the message."),
  citations: z.array(Citation).optional().describe("Parts of `content` that come from these pages."),
  provider_blocks: z
    .array(ProviderBlock)
    .optional()
    .describe("Blocks of the provider's own tools, in the order of the reply."),
  model: z.string().optional().describe("The model that wrote the message, as `provider:model`."),
  usage: Usage.optional(),
  by_user: z
    .literal(true)
    .optional()
    .describe("True if no model wrote the message, because a user started a run with these tool calls."),
  incomplete: z
    .enum(["stopped", "failed"])
    .optional()
    .describe(
      "Present only if the answer was cut off: `stopped` by someone, or `failed` by an error or a limit. `content` contains the answer up to that point.",
    ),
});

export const ToolMessage = z.object({
  ...identity,
  role: z.literal("tool"),
  content: Content.describe("The tool's output."),
  tool_call_id: z.string(),
  name: z.string(),
  error: z.string().optional().describe("Present only if the call failed."),
  sources: z.array(WebSource).optional().describe("Web pages that the output comes from."),
  denied: z
    .literal(true)
    .optional()
    .describe(
      "True if a person or a rule denied the call (`error` is the reason), or if the user declined to answer its question.",
    ),
});

export const Message = z
  .discriminatedUnion("role", [SystemMessage, UserMessage, AssistantMessage, ToolMessage])
  .meta({ id: "Message" });
export type SystemMessage = z.infer<typeof SystemMessage>;
export type UserMessage = z.infer<typeof UserMessage>;
export type AssistantMessage = z.infer<typeof AssistantMessage>;
export type ToolMessage = z.infer<typeof ToolMessage>;
export type Message = z.infer<typeof Message>;
