// Structured output for providers that do not support it. The model passes its answer as the arguments of a tool, and the
// reader returns these as text.

import { isObject } from "../../lib/json.ts";
import type { JsonSchema } from "../../lib/untrusted-schema/index.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import type { ModelReply, ModelRequest, ModelSettings, ToolSchema } from "../core/model.ts";
import type { ReplyReader } from "./reply.ts";

/** `native`: the provider enforces the schema. `tool`: a tool receives the answer. */
export type OutputMode = "native" | "tool";

interface OutputPlan {
  readonly request: ModelRequest;
  readonly reader: ReplyReader;
}

/**
 * Returns the request for the provider, and a reader for its reply. Adds a tool and requires a call. If the
 * model thinks, the request only allows a call, because most models reject a forced call while they think.
 */
export function planned(
  request: ModelRequest,
  reader: ReplyReader,
  { mode, settings }: { readonly mode: OutputMode; readonly settings: ModelSettings },
): OutputPlan {
  const { output, ...others } = request;
  if (!output || mode === "native") return { request, reader };
  const tool = answerTool(output, request.tools);
  const { tool_choice: wanted, thinking } = { ...settings, ...request.settings };
  const silent = wanted === "none";
  // The tools stay sorted so that requests share a prefix.
  const tools = [...(silent ? [] : request.tools), tool].sort((a, b) => (a.name < b.name ? -1 : 1));
  const withTool = { ...others, tools };
  const text = asText(reader, tool.name);
  if (typeof wanted === "object" && !request.toolCalled) return { request: withTool, reader: text };
  const tool_choice = thinking === undefined ? ("required" as const) : ("auto" as const);
  const choice = { settings: { ...request.settings, tool_choice } };
  // Calls stay required after the first one, because the last one is the answer.
  return { request: { ...withTool, ...choice, toolCalled: false }, reader: text };
}

function answerTool(schema: JsonSchema, tools: readonly ToolSchema[]): ToolSchema {
  let name = "final_answer";
  while (tools.some((tool) => tool.name === name)) name += "_";
  const description =
    "Receives your final answer. Call it once, and with no other call, when you have everything you need. An answer outside of it is lost.";
  return { name, description, parameters: schema };
}

/**
 * Returns the arguments of calls to `name` as the reply's text. Drops such calls if the reply contains other
 * calls, because the model has not seen their results yet.
 */
function asText(reader: ReplyReader, name: string): ReplyReader {
  const answers = new Set<number>();
  const show = (event: StreamEvent): StreamEvent[] => {
    if (event.event !== "on_chat_model_stream" || !("tool_call" in event.data)) return [event];
    const { index, name: called, args_delta } = event.data.tool_call;
    if (called === name) answers.add(index);
    if (!answers.has(index)) return [event];
    return args_delta === "" ? [] : [{ event: "on_chat_model_stream", data: { delta: args_delta } }];
  };
  return {
    take(event, out) {
      const events: StreamEvent[] = [];
      reader.take(event, events);
      out.push(...events.flatMap(show));
    },
    close: () => reader.close(),
    get ended() {
      return reader.ended;
    },
    get usage() {
      return reader.usage;
    },
    finish(out) {
      const events: StreamEvent[] = [];
      const reply = withAnswer(reader.finish(events), name);
      out.push(...events.flatMap(show));
      return reply;
    },
  };
}

function withAnswer(reply: ModelReply, name: string): ModelReply {
  const answer = reply.tool_calls.find((call) => call.name === name);
  if (!answer) return reply;
  const tool_calls = reply.tool_calls.filter((call) => call.name !== name);
  if (tool_calls.length > 0) return { ...reply, tool_calls };
  const content = answer.malformed ?? JSON.stringify(answer.args);
  const stop_reason = reply.stop_reason === "tool_use" ? "end_turn" : reply.stop_reason;
  return { ...reply, ...withoutPlaces(reply), content, tool_calls, stop_reason };
}

/**
 * Drops the citations and resets the places of the provider's blocks, because the answer replaces the text
 * that they refer to.
 */
function withoutPlaces({
  provider_blocks = [],
}: ModelReply): Pick<ModelReply, "provider_blocks" | "citations"> {
  const blocks = provider_blocks.filter(({ characters }) => characters === undefined);
  return { provider_blocks: blocks.map((block) => ({ ...block, after_text: 0 })), citations: [] };
}

/**
 * Converts a schema for providers that enforce it: closes every object, and moves unsupported keywords to the
 * description for a later check. Returns undefined if that would change the meaning (open objects,
 * references).
 */
export function enforceable(schema: JsonSchema): JsonSchema | undefined {
  try {
    return closed(schema);
  } catch (error) {
    if (error === NOT_ENFORCEABLE) return undefined;
    throw error;
  }
}

/** True if each object in `schema` requires all its properties. */
export function isComplete(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.every(isComplete);
  if (!isObject(schema)) return true;
  const { properties, required } = schema;
  const names = isObject(properties) ? Object.keys(properties) : [];
  const given = Array.isArray(required) ? required : [];
  return names.every((name) => given.includes(name)) && Object.values(schema).every(isComplete);
}

const NOT_ENFORCEABLE = new Error("A provider cannot enforce everything in the schema.");
const KEPT: ReadonlySet<string> = new Set([
  ...["type", "properties", "required", "items", "enum", "const", "anyOf", "description", "title"],
  ...["additionalProperties", "$schema", "$id", "default", "examples", "$comment"],
]);
const PLAIN = ["type", "required", "enum", "const", "title"] as const;
const TOLD: ReadonlySet<string> = new Set([
  ...["format", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum"],
  ...["exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems"],
]);

function closed(schema: unknown): JsonSchema {
  if (!isObject(schema) || Object.keys(schema).some((key) => !KEPT.has(key) && !TOLD.has(key)))
    throw NOT_ENFORCEABLE;
  const { type, properties, items, anyOf, additionalProperties, description } = schema;
  const isAnObject = [type].flat().includes("object");
  const isTyped = type !== undefined || anyOf !== undefined || "enum" in schema || "const" in schema;
  if (!isTyped || (isAnObject && (!isObject(properties) || (additionalProperties ?? false) !== false)))
    throw NOT_ENFORCEABLE;
  const told = Object.entries(schema).filter(([key]) => TOLD.has(key));
  const words = [
    ...(typeof description === "string" ? [description] : []),
    ...told.map(([key, value]) => `${key}: ${JSON.stringify(value)}`),
  ];
  return {
    ...Object.fromEntries(PLAIN.flatMap((key) => (key in schema ? [[key, schema[key]]] : []))),
    ...(words.length > 0 ? { description: words.join("; ") } : {}),
    ...(isObject(properties)
      ? {
          properties: Object.fromEntries(
            Object.entries(properties).map(([key, each]) => [key, closed(each)]),
          ),
          additionalProperties: false,
        }
      : {}),
    ...(items === undefined ? {} : { items: closed(items) }),
    ...(Array.isArray(anyOf) ? { anyOf: anyOf.map(closed) } : {}),
  };
}
