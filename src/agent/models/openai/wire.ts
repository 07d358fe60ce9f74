// Converts a model request for Chat Completions. Pure. The parts that change least come first, and equal beginnings produce
// equal bytes, so the provider's cache can reuse them.

import type { OpenAI } from "openai";
import type { JsonSchema } from "../../../lib/untrusted-schema/index.ts";
import type { Part, Reasoning } from "../../core/message.ts";
import type { ModelRequest, ModelSettings, SystemBlock, ToolChoice, ToolSchema } from "../../core/model.ts";
import type { ClosedTurns, WireSteps } from "../closed-turns.ts";
import { effortOf } from "../effort.ts";
import { fileText, isPdf, nameOf } from "../file-text.ts";
import { enforceable, isComplete } from "../output.ts";
import { type AnsweredCall, type HistoryStep, repair } from "../repair.ts";
import { toolChoiceOf } from "../tool-choice.ts";
import type { OpenAIDialect } from "./dialect.ts";
import { callExtra, thinkingConfig } from "./google.ts";
import { alwaysSearches, callableTools, searchOptions } from "./search.ts";

type Message = OpenAI.ChatCompletionMessageParam;
type Params = OpenAI.ChatCompletionCreateParamsStreaming;
type AssistantStep = Extract<HistoryStep, { role: "assistant" }>;

/**
 * The format in which compatible servers accept a model's thoughts. OpenAI itself neither sends nor accepts
 * thoughts.
 */
interface Thoughts {
  reasoning_content?: string;
  reasoning?: string;
  reasoning_details?: unknown;
}

export interface WireOptions {
  readonly model: string;
  readonly settings: ModelSettings;
  readonly dialect: OpenAIDialect;
}

/** Returns the serializer for servers that use a dialect. */
export const wireSteps = (dialect: OpenAIDialect): WireSteps<Message> => ({
  callId: dialect.callId,
  keepsOwnIds: dialect.keepsOwnIds,
  write: (steps) =>
    steps.flatMap((step) => messages(dialect.documents ? step : withoutDocuments(step), dialect)),
});

/** Omits the closed turns of the request, if any. */
export function toWire(
  asked: ModelRequest,
  { model, settings, dialect }: WireOptions,
  closed?: ClosedTurns,
): Params {
  const request = { ...asked, tools: callableTools(asked, model) };
  const { callId, keepsOwnIds, write } = wireSteps(dialect);
  const open = request.messages.slice(closed?.messages.length ?? 0);
  const steps = repair(open, { model: request.model.name, callId, keepsOwnIds, after: closed?.ids });
  const { thinking } = settings;
  const temperature = alwaysSearches(model) ? undefined : settings.temperature;
  const max_tokens = lower(settings.max_tokens, request.outputLimit);
  const choice = toolChoiceOf(request, settings);
  return {
    model,
    stream: true,
    ...(dialect.askForUsage ? { stream_options: { include_usage: true } } : {}),
    ...(max_tokens === undefined ? {} : { [dialect.maxTokens]: max_tokens }),
    ...(temperature === undefined || thinking !== undefined ? {} : { temperature }),
    ...reasoningEffort(request, { model, settings, dialect }),
    ...(request.tools.length > 0 ? { tools: request.tools.map(tool) } : {}),
    ...(choice === undefined ? {} : { tool_choice: toolChoice(choice) }),
    ...(request.output ? responseFormat(request.output) : {}),
    ...searchOptions(asked),
    messages: [...system(request.system), ...write(steps)],
  };
}

/**
 * OpenAI enforces only schemas in which all properties are required. It follows other schemas as well as it
 * can.
 */
function responseFormat(output: JsonSchema) {
  const schema = enforceable(output) ?? output;
  const json_schema = { name: "answer", schema: { ...schema }, strict: isComplete(schema) };
  return { response_format: { type: "json_schema", json_schema } } as const;
}

const lower = (a: number | undefined, b: number | undefined) =>
  a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);

function reasoningEffort({ tools }: ModelRequest, { model, settings: { thinking }, dialect }: WireOptions) {
  if (dialect.google) return thinking === undefined ? {} : thinkingConfig(model, thinking);
  if (tools.length > 0 && dialect.toolsOrReasoning(model)) return { reasoning_effort: "none" } as const;
  return thinking === undefined ? {} : { reasoning_effort: effortOf(thinking) };
}

function toolChoice(choice: ToolChoice): OpenAI.ChatCompletionToolChoiceOption {
  return typeof choice === "string" ? choice : { type: "function", function: { name: choice.name } };
}

function system(blocks: readonly SystemBlock[]): Message[] {
  const texts = (["static", "semi", "dynamic"] as const).flatMap((kind) =>
    blocks
      .filter(({ cache, text }) => cache === kind && text.trim() !== "")
      .map(({ text }) => text.toWellFormed()),
  );
  return texts.length > 0 ? [{ role: "system", content: texts.join("\n\n") }] : [];
}

function tool({ name, description, parameters }: ToolSchema): OpenAI.ChatCompletionFunctionTool {
  return {
    type: "function",
    function: { name, description, parameters: { type: "object", properties: {}, ...parameters } },
  };
}

function messages(step: HistoryStep, dialect: OpenAIDialect): Message[] {
  switch (step.role) {
    case "system":
      return [{ role: "system", content: textOf(step.content) }];
    case "user":
      return [{ role: "user", content: content(step.content) }];
    case "assistant":
      return [reply(step, dialect), ...step.calls.map(result), ...shown(step.calls)];
  }
}

/** Replaces each document with its name. */
function withoutDocuments(step: HistoryStep): HistoryStep {
  const named = (parts: readonly Part[]) =>
    parts.map((part) =>
      part.type === "file" && isPdf(part) ? ({ type: "text", text: textOfPart(part) } as const) : part,
    );
  if (step.role !== "assistant") return { ...step, content: named(step.content) };
  return { ...step, calls: step.calls.map((call) => ({ ...call, output: named(call.output) })) };
}

function reply({ text, calls, reasoning }: AssistantStep, dialect: OpenAIDialect): Message & Thoughts {
  const { thoughtInEveryReply, google } = dialect;
  return {
    role: "assistant",
    content: text === "" ? null : text,
    ...(thoughtInEveryReply ? { reasoning_content: "" } : {}),
    ...thoughts(reasoning),
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map((made, index) => ({
            ...call(made),
            ...(google ? callExtra(reasoning, index) : {}),
          })),
        }),
  };
}

/** Sends thoughts in the field they came from. */
function thoughts(reasoning: readonly Reasoning[]): Thoughts {
  const { field, details } = reasoning[0]?.metadata ?? {};
  if (details !== undefined) return { reasoning_details: details };
  if (field !== "reasoning_content" && field !== "reasoning") return {};
  return { [field]: reasoning.map(({ text }) => text).join("") };
}

function call({ id, name, args }: AnsweredCall): OpenAI.ChatCompletionMessageFunctionToolCall {
  return { id, type: "function", function: { name, arguments: JSON.stringify(args) } };
}

function result({ id, output, failed }: AnsweredCall): Message {
  const content = textOf(output);
  return { role: "tool", tool_call_id: id, content: failed ? `Error: ${content}` : content };
}

/**
 * Returns messages with the calls' images and documents. A tool result must be text, so these follow in a
 * user message.
 */
function shown(calls: readonly AnsweredCall[]): Message[] {
  const parts = calls.flatMap(({ name, output }) => {
    const media = output.filter(isMedia);
    return media.length === 0 ? [] : [{ type: "text", text: `Shown by \`${name}\`:` } as const, ...media];
  });
  return parts.length === 0 ? [] : [{ role: "user", content: parts.map(contentPart) }];
}

const isMedia = (part: Part) => part.type === "image" || (part.type === "file" && isPdf(part));

function textOf(parts: readonly Part[]): string {
  return parts.map(textOfPart).join("\n");
}

function textOfPart(part: Part): string {
  if (part.type === "text") return part.text;
  if (part.type === "file") return isPdf(part) ? `[${nameOf(part)}]` : fileText(part);
  return `[${part.media_type}]`;
}

/** Returns plain text if possible, because some servers do not accept parts. */
function content(parts: readonly Part[]): string | OpenAI.ChatCompletionContentPart[] {
  return parts.some(isMedia) ? parts.map(contentPart) : textOf(parts);
}

function contentPart(part: Part): OpenAI.ChatCompletionContentPart {
  if (part.type === "image")
    return { type: "image_url", image_url: { url: `data:${part.media_type};base64,${part.data}` } };
  if (part.type === "file" && isPdf(part))
    return {
      type: "file",
      file: { filename: nameOf(part), file_data: `data:application/pdf;base64,${part.data}` },
    };
  return { type: "text", text: textOfPart(part) };
}
