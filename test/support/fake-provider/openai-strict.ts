// The checks of Chat Completions, in OpenAI's words, and the further ones of servers that copy it.

import { z } from "zod";
import { type Asked, firstFault, shapeFault, unsupportedIn } from "./vendor.ts";

const Text = z.strictObject({ type: z.literal("text"), text: z.string().min(1) });
const Image = z.strictObject({
  type: z.literal("image_url"),
  image_url: z.strictObject({
    url: z.string().regex(/^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$/),
  }),
});
const File = z.strictObject({
  type: z.literal("file"),
  file: z.strictObject({
    filename: z.string().min(1),
    file_data: z.string().regex(/^data:application\/pdf;base64,./),
  }),
});
const content = z.union([z.string(), z.array(z.discriminatedUnion("type", [Text, Image, File])).min(1)]);
const ToolCall = z.strictObject({
  id: z.string().min(1).max(40, "string too long. Expected a string with maximum length 40"),
  type: z.literal("function"),
  function: z.strictObject({
    name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, "string does not match pattern '^[a-zA-Z0-9_-]+$'"),
    arguments: z.string(),
  }),
});
const Message = z.discriminatedUnion("role", [
  z.strictObject({ role: z.literal("system"), content: z.string() }),
  z.strictObject({ role: z.literal("user"), content }),
  z.strictObject({
    role: z.literal("assistant"),
    content: z.string().nullable(),
    tool_calls: z.array(ToolCall).min(1).optional(),
    reasoning_content: z.string().optional(),
    reasoning: z.string().optional(),
    reasoning_details: z.array(z.looseObject({ type: z.string() })).optional(),
  }),
  z.strictObject({ role: z.literal("tool"), tool_call_id: z.string(), content: z.string() }),
]);
type Message = z.infer<typeof Message>;

const Body = z.strictObject({
  model: z.string().min(1),
  messages: z.array(Message).min(1),
  stream: z.literal(true),
  stream_options: z.strictObject({ include_usage: z.boolean() }).optional(),
  max_tokens: z.int().positive().optional(),
  max_completion_tokens: z.int().positive().optional(),
  temperature: z.number().min(0).max(2).optional(),
  reasoning_effort: z.enum(["none", "minimal", "low", "medium", "high"]).optional(),
  response_format: z
    .strictObject({
      type: z.literal("json_schema"),
      json_schema: z.strictObject({
        name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/),
        schema: z.record(z.string(), z.unknown()),
        strict: z.boolean().optional(),
      }),
    })
    .optional(),
  tool_choice: z
    .union([
      z.enum(["auto", "none", "required"]),
      z.strictObject({ type: z.literal("function"), function: z.strictObject({ name: z.string() }) }),
    ])
    .optional(),
  tools: z
    .array(
      z.strictObject({
        type: z.literal("function"),
        function: z.strictObject({
          name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/),
          description: z.string().optional(),
          parameters: z.looseObject({
            type: z.literal("object"),
            properties: z.record(z.string(), z.unknown()),
          }),
        }),
      }),
    )
    .min(1)
    .optional(),
  web_search_options: z
    .strictObject({ search_context_size: z.enum(["low", "medium", "high"]).optional() })
    .optional(),
});
type Body = z.infer<typeof Body>;

/** The sentence of the 400, or nothing. */
export function openaiFault({ body }: Asked): string | undefined {
  return shapeFault(Body, body) ?? firstFault(CHECKS, Body.parse(body));
}

const CHECKS: readonly ((body: Body) => string | undefined)[] = [
  everyCallAnswered,
  ends,
  noEmptyContent,
  argumentsAreObjects,
  uniqueIds,
  toolChoice,
  reasoningEffort,
  temperature,
  responseFormat,
  search,
];

const callsIn = (message: Message | undefined) =>
  message?.role === "assistant" ? (message.tool_calls ?? []) : [];

function ends({ messages }: Body) {
  const first = messages.find(({ role }) => role !== "system");
  if (first?.role !== "user") return "Conversation roles must alternate user/assistant/user/assistant/...";
  return messages.at(-1)?.role === "assistant"
    ? "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"
    : undefined;
}

function toolChoice({ tools = [], tool_choice: choice }: Body) {
  if (choice === undefined) return undefined;
  if (tools.length === 0) return "'tool_choice' is only allowed when 'tools' are specified.";
  return typeof choice === "string" || tools.some((tool) => tool.function.name === choice.function.name)
    ? undefined
    : `Tool choice '${choice.function.name}' not found in 'tools' parameter.`;
}

function noEmptyContent({ messages }: Body) {
  for (const [index, message] of messages.entries()) {
    if (message.content === null && callsIn(message).length === 0)
      return `Invalid value for 'messages.[${index}].content': expected a string, got null.`;
    if (typeof message.content === "string" && message.content.trim() === "")
      return `Invalid 'messages[${index}].content': empty string.`;
  }
  return undefined;
}

function argumentsAreObjects({ messages }: Body) {
  const bad = messages
    .flatMap(callsIn)
    .find((call) => !/^\{/.test(call.function.arguments) || !isJson(call.function.arguments));
  return bad && `Invalid function arguments of '${bad.id}': not a JSON object.`;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function uniqueIds({ messages }: Body) {
  const ids = messages.flatMap(callsIn).map(({ id }) => id);
  return new Set(ids).size < ids.length ? "Duplicate tool call ids found." : undefined;
}

function everyCallAnswered({ messages }: Body) {
  let open = new Set<string>();
  for (const [index, message] of messages.entries()) {
    if (message.role === "tool") {
      if (!open.delete(message.tool_call_id))
        return "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
      if (messages[index + 1]?.role === "tool") continue;
    } else open = new Set(callsIn(message).map(({ id }) => id));
    if (open.size > 0 && messages[index + 1]?.role !== "tool")
      return `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...open].join(", ")}`;
  }
  return undefined;
}

function responseFormat({ response_format }: Body) {
  const { strict, schema } = response_format?.json_schema ?? {};
  if (!strict) return undefined;
  const fault = unsupportedIn(schema, () => false) ?? incompleteIn(schema);
  return fault && `Invalid schema for response_format 'answer': In context=(), ${fault}.`;
}

function incompleteIn(schema: unknown): string | undefined {
  const { properties = {}, required = [] } = Object(schema);
  const missing = Object.keys(properties).find((name) => !required.includes(name));
  if (missing)
    return `'required' is required to be supplied and to be an array including every key in properties. Missing '${missing}'`;
  return Object.values(properties).map(incompleteIn).find(Boolean);
}

function reasoningEffort({ model, tools, reasoning_effort }: Body) {
  return tools && /^gpt-5\.[4-9]|^gpt-[6-9]/.test(model) && reasoning_effort !== "none"
    ? `Function tools with reasoning_effort are not supported for ${model} in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.`
    : undefined;
}

/** OpenAI itself has the search in some models only; these always search. */
function search({ model, tools, temperature, web_search_options: options }: Body) {
  const isSearching = /-search-(preview|api)/.test(model);
  if (options && model.startsWith("gpt-") && !isSearching) return "Unknown parameter: 'web_search_options'.";
  if (!isSearching) return undefined;
  if (temperature !== undefined) return "Model incompatible request argument supplied: temperature";
  return tools && model.includes("-search-preview")
    ? "Model incompatible request argument supplied: tools"
    : undefined;
}

function temperature({ temperature, reasoning_effort }: Body) {
  return temperature !== undefined && reasoning_effort !== undefined && reasoning_effort !== "none"
    ? "Unsupported parameter: 'temperature' is not supported with this model."
    : undefined;
}
