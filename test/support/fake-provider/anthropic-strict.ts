// The checks of the Messages API, in its own words. Stricter than any one model: what some model refuses, this
// one refuses, where it can be told from the request.

import { createHash, createHmac } from "node:crypto";
import { z } from "zod";
import { Citations, SearchResult, SearchTool, ServerToolUse, searchFault } from "./anthropic-search.ts";
import { type Asked, firstFault, shapeFault, unsupportedIn } from "./vendor.ts";

const cache_control = z
  .strictObject({ type: z.literal("ephemeral"), ttl: z.enum(["5m", "1h"]).optional() })
  .optional();
const Text = z.strictObject({
  type: z.literal("text"),
  text: z.string(),
  citations: Citations,
  cache_control,
});
const Image = z.strictObject({
  type: z.literal("image"),
  source: z.strictObject({
    type: z.literal("base64"),
    media_type: z.enum(["image/jpeg", "image/png", "image/gif", "image/webp"]),
    data: z.base64().min(1),
  }),
  cache_control,
});
const Document = z.strictObject({
  type: z.literal("document"),
  source: z.strictObject({
    type: z.literal("base64"),
    media_type: z.literal("application/pdf"),
    data: z.base64().min(1),
  }),
  title: z.string().optional(),
  cache_control,
});
const ToolUse = z.strictObject({
  type: z.literal("tool_use"),
  id: z.string().regex(/^[a-zA-Z0-9_-]+$/, "String should match pattern '^[a-zA-Z0-9_-]+$'"),
  name: z.string().regex(/^[a-zA-Z0-9_-]{1,128}$/, "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"),
  input: z.record(z.string(), z.unknown()),
  cache_control,
});
const ToolResult = z.strictObject({
  type: z.literal("tool_result"),
  tool_use_id: z.string(),
  content: z.union([z.string(), z.array(z.discriminatedUnion("type", [Text, Image, Document]))]).optional(),
  is_error: z.boolean().optional(),
  cache_control,
});
const Thinking = z.strictObject({ type: z.literal("thinking"), thinking: z.string(), signature: z.string() });
const Redacted = z.strictObject({ type: z.literal("redacted_thinking"), data: z.string() });
const Block = z.discriminatedUnion("type", [
  Text,
  Image,
  Document,
  ToolUse,
  ToolResult,
  Thinking,
  Redacted,
  ServerToolUse,
  SearchResult,
]);
type Block = z.infer<typeof Block>;

const Body = z.strictObject({
  model: z.string().min(1),
  max_tokens: z.int().positive(),
  messages: z.array(z.strictObject({ role: z.enum(["user", "assistant"]), content: z.array(Block) })),
  system: z.array(Text).optional(),
  stream: z.literal(true),
  temperature: z.number().min(0).max(1).optional(),
  thinking: z
    .discriminatedUnion("type", [
      z.strictObject({ type: z.literal("enabled"), budget_tokens: z.int().min(1024) }),
      z.strictObject({
        type: z.literal("adaptive"),
        display: z.enum(["summarized", "omitted"]).optional(),
        block_binding: z
          .strictObject({ prefix_mismatch_behavior: z.enum(["error", "drop_block"]).optional() })
          .optional(),
      }),
    ])
    .optional(),
  output_config: z
    .strictObject({
      effort: z.enum(["low", "medium", "high", "xhigh", "max"]).optional(),
      format: z
        .strictObject({ type: z.literal("json_schema"), schema: z.record(z.string(), z.unknown()) })
        .optional(),
    })
    .optional(),
  tool_choice: z
    .discriminatedUnion("type", [
      z.strictObject({ type: z.enum(["auto", "none", "any"]) }),
      z.strictObject({ type: z.literal("tool"), name: z.string() }),
    ])
    .optional(),
  tools: z
    .array(
      z.union([
        z.strictObject({
          name: z.string().regex(/^[a-zA-Z0-9_-]{1,128}$/),
          description: z.string().optional(),
          input_schema: z.looseObject({ type: z.literal("object") }),
          cache_control,
        }),
        SearchTool,
      ]),
    )
    .optional(),
});
export type Body = z.infer<typeof Body>;

interface Request {
  readonly headers: Asked["headers"];
  readonly body: Body;
}

/** The sentence of the 400, or nothing. */
export function anthropicFault({ headers, body }: Asked): string | undefined {
  const misshapen = shapeFault(Body, body);
  return misshapen ?? firstFault(CHECKS, { headers, body: Body.parse(body) });
}

const CHECKS: readonly ((request: Request) => string | undefined)[] = [
  versionHeader,
  sampling,
  thinkingConfig,
  outputFormat,
  ends,
  noEmptyContent,
  cacheMarks,
  toolNames,
  toolChoice,
  uniqueIds,
  everyCallAnswered,
  everyResultAsked,
  thinkingFirst,
  signatures,
  ({ body }) => searchFault(body),
];

const versionOf = (model: string) => {
  const [, major = 0, minor = 0] = /claude-[a-z]+-(\d{1,2})(?:-(\d{1,2}))?(?!\d)/.exec(model) ?? [];
  return Number(`${major}.${minor}`);
};

function versionHeader({ headers }: Request) {
  return headers["anthropic-version"] ? undefined : "anthropic-version: header is required";
}

function sampling({ headers, body: { model, temperature, thinking } }: Request) {
  if (temperature === undefined) return undefined;
  if (headers["anthropic-version"] !== "2023-06-01") return "temperature: Extra inputs are not permitted";
  if (versionOf(model) >= 4.7) return "`temperature` is deprecated for this model.";
  return thinking ? "`temperature` may only be set to 1 when thinking is enabled." : undefined;
}

function thinkingConfig({ headers, body: { model, thinking, max_tokens, output_config } }: Request) {
  const version = versionOf(model);
  if (output_config?.effort && version < 4.6) return "This model does not support the effort parameter.";
  if (!thinking) return undefined;
  if (thinking.type === "enabled") {
    if (version >= 4.7)
      return '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.';
    return max_tokens > thinking.budget_tokens
      ? undefined
      : "`max_tokens` must be greater than `thinking.budget_tokens`.";
  }
  if (version < 4.6) return "adaptive thinking is not supported on this model";
  const beta = String(headers["anthropic-beta"] ?? "").includes("thinking-binding-controls-2026-08-01");
  return thinking.block_binding && !beta
    ? "thinking.adaptive.block_binding: Extra inputs are not permitted"
    : undefined;
}

const UNSUPPORTED =
  /^(minLength|maxLength|minimum|maximum|multipleOf|maxItems|uniqueItems|patternProperties)$/;

function outputFormat({ body: { model, output_config } }: Request) {
  if (!output_config?.format) return undefined;
  if (versionOf(model) < 4.5) return "This model does not support structured outputs.";
  const fault = unsupportedIn(output_config.format.schema, (key) => UNSUPPORTED.test(key));
  return fault && `output_config.format.schema: ${fault}`;
}

function ends({ body: { messages } }: Request) {
  if (messages.length === 0) return "messages: at least one message is required";
  if (messages[0]?.role !== "user") return 'messages: first message must use the "user" role';
  const last = messages.at(-1);
  // A paused reply continues.
  const isPaused = last?.content.some(({ type }) => type === "server_tool_use");
  return last?.role === "assistant" && !isPaused
    ? "This model does not support assistant message prefill. The conversation must end with a user message."
    : undefined;
}

function noEmptyContent({ body: { messages, system = [] } }: Request) {
  const blank = (text: string) => text.trim() === "";
  if (system.some(({ text }) => blank(text))) return "system: text content blocks must be non-empty";
  for (const [index, { content }] of messages.entries()) {
    if (content.length === 0) return `messages.${index}: all messages must have non-empty content`;
    for (const block of content) {
      if (block.type === "text" && blank(block.text))
        return "messages: text content blocks must contain non-whitespace text";
      if (block.type !== "tool_result") continue;
      const inner = block.content ?? "";
      const empty = typeof inner === "string" ? blank(inner) : inner.length === 0;
      if (empty) return `messages.${index}: content cannot be empty if \`is_error\` is true`;
      if (typeof inner !== "string" && inner.some((part) => part.type === "text" && blank(part.text)))
        return "messages: text content blocks must be non-empty";
    }
  }
  return undefined;
}

function cacheMarks({ body }: Request) {
  const marks = JSON.stringify(body).split('"cache_control":').length - 1;
  return marks > 4 ? `A maximum of 4 blocks with cache_control may be provided. Found ${marks}.` : undefined;
}

function toolNames({ body: { tools = [] } }: Request) {
  return new Set(tools.map(({ name }) => name)).size < tools.length
    ? "tools: Tool names must be unique."
    : undefined;
}

function toolChoice({ body: { tools = [], tool_choice: choice, thinking } }: Request) {
  if (!choice) return undefined;
  if (tools.length === 0) return "tool_choice: may only be specified while providing tools";
  if (thinking && (choice.type === "any" || choice.type === "tool"))
    return "Thinking may not be enabled when tool_choice forces tool use.";
  return choice.type !== "tool" || tools.some(({ name }) => name === choice.name)
    ? undefined
    : `Tool '${choice.name}' not found in provided tools`;
}

const usesIn = (content: readonly Block[] = []) => content.filter((block) => block.type === "tool_use");
const resultsIn = (content: readonly Block[] = []) => content.filter((block) => block.type === "tool_result");

function uniqueIds({ body: { messages } }: Request) {
  const seen = new Set<string>();
  for (const [index, { content }] of messages.entries())
    for (const { id } of usesIn(content)) {
      if (seen.has(id)) return `messages.${index}: \`tool_use\` ids must be unique`;
      seen.add(id);
    }
  return undefined;
}

function everyCallAnswered({ body: { messages } }: Request) {
  for (const [index, { role, content }] of messages.entries()) {
    const uses = usesIn(content);
    if (uses.length > 0 && role === "user") return `messages.${index}: user messages cannot contain tool_use`;
    const next = messages[index + 1];
    // Results stand first in the next message: after another block they are not found.
    const leading = next?.content.findIndex((block) => block.type !== "tool_result") ?? 0;
    const results = resultsIn(leading === -1 ? next?.content : next?.content.slice(0, leading));
    const open = uses.filter(({ id }) => !results.some(({ tool_use_id }) => tool_use_id === id));
    if (open.length > 0)
      return `messages.${index + 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.map(({ id }) => id).join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
  }
  return undefined;
}

function everyResultAsked({ body: { messages } }: Request) {
  for (const [index, { role, content }] of messages.entries()) {
    const asked = new Set(usesIn(messages[index - 1]?.content).map(({ id }) => id));
    for (const { tool_use_id } of resultsIn(content)) {
      if (role !== "user") return `messages.${index}: assistant messages cannot contain tool_result`;
      if (!asked.delete(tool_use_id))
        return `messages.${index}.content: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${tool_use_id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message, and a single one.`;
    }
  }
  return undefined;
}

const isThought = (block: Block | undefined) =>
  block?.type === "thinking" || block?.type === "redacted_thinking";

/** With a budget, the tool loop at hand must have begun with a thought. */
function thinkingFirst({ body: { messages, thinking } }: Request) {
  if (thinking?.type !== "enabled") return undefined;
  const index = messages.findLastIndex(({ role }) => role === "assistant");
  const first = messages[index]?.content[0];
  if (usesIn(messages[index]?.content).length === 0 || isThought(first)) return undefined;
  return `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first?.type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block.`;
}

function signatures(request: Request) {
  const { body } = request;
  for (const [index, { content }] of body.messages.entries())
    for (const [at, block] of content.entries()) {
      const where = `messages.${index}.content.${at}`;
      if (block.type === "redacted_thinking" && block.data !== seal("redacted"))
        return `${where}: Invalid \`data\` in \`redacted_thinking\` block`;
      if (block.type !== "thinking") continue;
      const [seal_ = "", prefix = ""] = block.signature.split(".");
      if (seal_ !== seal(block.thinking)) return `${where}: Invalid \`signature\` in \`thinking\` block`;
      if (prefix === prefixOf(body, index) || versionOf(body.model) < 5.1) continue;
      if (
        body.thinking?.type === "adaptive" &&
        body.thinking.block_binding?.prefix_mismatch_behavior === "drop_block"
      )
        continue;
      return `${where}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation.`;
    }
  return undefined;
}

/** The signature of a thought: made of itself and everything before it. */
export function signature(thought: string, body: Body): string {
  return `${seal(thought)}.${prefixOf(body, body.messages.length)}`;
}

export const seal = (text: string) => createHmac("sha256", "fake").update(text).digest("base64url");

function prefixOf({ system, tools, messages }: Body, length: number): string {
  const prefix = JSON.stringify(
    { system, tools, messages: messages.slice(0, length) },
    (key, value: unknown) => (key === "cache_control" ? undefined : value),
  );
  return createHash("sha256").update(prefix).digest("base64url");
}
