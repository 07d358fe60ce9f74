// Reads the input of chat clients: the whole history with each request, and possibly the conversation's name in a
// header.

import { z } from "zod";
import {
  assistantMessage,
  type Content,
  type Message,
  type Part,
  systemMessage,
  textOf,
  toolMessage,
  userMessage,
} from "../../../agent/core/message.ts";
import type { ModelSettings } from "../../../agent/core/model.ts";
import { newMessageId } from "../../../agent/core/new-ids.ts";
import { boundedList, boundedMap } from "../../../lib/bounded-schemas.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { mapInTicks } from "../../../lib/ticks.ts";
import type { Answer, Interrupt } from "../../../protocol/interrupt.ts";
import { readDataUrl } from "../../messages.ts";
import { argumentsOf, contentFrom, outputSchema, partFrom, refused, thinkingOf } from "../given.ts";
import { choiceOf, type FunctionChoice } from "../tool-choice.ts";

const SentPart = z.looseObject({
  type: z.string(),
  text: z.string().nullish(),
  // Mistral's clients send the URL itself.
  image_url: z.union([z.string(), z.looseObject({ url: z.string() })]).nullish(),
  file: z.looseObject({ file_data: z.string().nullish(), filename: z.string().nullish() }).nullish(),
});
const SentCall = z.looseObject({
  id: z.string().min(1).max(256),
  function: z.looseObject({
    name: z.string().min(1),
    arguments: z.union([z.string(), z.record(z.string(), z.unknown())]),
  }),
});
export const SentMessage = z.looseObject({
  role: z.enum(["system", "developer", "user", "assistant", "tool"]),
  content: z.union([z.string(), boundedList(SentPart, 1000)]).nullish(),
  tool_calls: boundedList(SentCall, 128).nullish(),
  tool_call_id: z.string().nullish(),
});
export type SentMessage = z.infer<typeof SentMessage>;

const Tool = z.looseObject({
  type: z.literal("function", { error: "may only be `function`" }),
  function: z.looseObject({
    name: z.string(),
    description: z.string().nullish(),
    parameters: z.record(z.string(), z.unknown()).nullish(),
  }),
});

const NamedSchema = z.looseObject({ schema: z.record(z.string(), z.unknown()).optional() });

export const ChatCompletionBody = z.looseObject({
  model: z.string().min(1).max(256).describe("Name of an agent."),
  messages: boundedList(SentMessage, 10_000).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  max_tokens: z.int().min(1).nullish(),
  max_completion_tokens: z.int().min(1).nullish(),
  reasoning_effort: z.string().max(64).nullish(),
  reasoning: z.looseObject({ effort: z.string().max(64).nullish() }).nullish(),
  tools: boundedList(Tool, 64).nullish(),
  tool_choice: z.unknown().optional(),
  functions: z.unknown().optional(),
  n: z.int().nullish(),
  response_format: z.looseObject({ type: z.string(), json_schema: NamedSchema.nullish() }).nullish(),
  metadata: boundedMap(z.string(), z.unknown(), 1000).nullish(),
  user: z.unknown().optional().describe("Ignored: the credentials identify the user."),
});
export type ChatCompletionBody = z.infer<typeof ChatCompletionBody>;

/** Throws `invalid_request` for unsupported options that would change the meaning of the request. */
export function refuseUnsupported({ n, functions }: ChatCompletionBody): void {
  if (n !== undefined && n !== null && n !== 1) throw refused("n", "only 1 is supported.");
  if (functions !== undefined && functions !== null)
    throw refused("functions", "is the old form of `tools`. Send `tools` and `tool_choice` instead.");
}

export const schemaOf = ({ response_format: format }: ChatCompletionBody) =>
  format ? outputSchema(format, format.json_schema?.schema, "response_format") : undefined;

/** Throws `invalid_request`. */
export const choiceIn = ({ tools, tool_choice }: ChatCompletionBody): FunctionChoice =>
  choiceOf(
    (tools ?? []).map(({ function: given }) => given),
    tool_choice,
  );

export function settingsOf(body: ChatCompletionBody, { tool_choice }: FunctionChoice): ModelSettings {
  const { temperature, max_tokens, max_completion_tokens, reasoning_effort, reasoning } = body;
  return omitUndefined({
    temperature: temperature ?? undefined,
    max_tokens: max_completion_tokens ?? max_tokens ?? undefined,
    thinking: thinkingOf(reasoning_effort ?? reasoning?.effort),
    tool_choice,
  });
}

/** Throws `invalid_request` for URLs, audio and files by id. */
export function contentOf({ content }: SentMessage): Content {
  if (typeof content === "string") return content;
  return contentFrom(content ?? [], partOf);
}

function partOf({ type, text, image_url, file }: z.infer<typeof SentPart>): Part {
  if (type === "text" && typeof text === "string") return partFrom({ type, text }, "messages");
  if (type === "image_url" && image_url) {
    const url = typeof image_url === "string" ? image_url : image_url.url;
    return partFrom({ type: "image", ...readDataUrl(url) }, "messages");
  }
  if (type === "file" && typeof file?.file_data === "string") {
    const { filename: name } = file;
    return partFrom({ type, ...readDataUrl(file.file_data), ...(name ? { name } : {}) }, "messages");
  }
  throw refused(
    "messages",
    `parts of type \`${type}\` are not supported. Use text, image_url or file with \`data:\` URLs.`,
  );
}

/** Converts a client's history to messages of a thread. A long history takes several ticks of the event loop. */
export function historyOf(tenant: string, sent: readonly SentMessage[]): Promise<Message[]> {
  const names = new Map(
    sent.flatMap(({ tool_calls }) =>
      (tool_calls ?? []).map(({ id, function: { name } }) => [id, name] as const),
    ),
  );
  return mapInTicks(tenant, sent, (message) => {
    const content = contentOf(message);
    if (message.role === "user") return userMessage(content);
    if (message.role === "assistant") return assistantMessage(textOf(content), ...callsOf(message));
    if (message.role !== "tool") return systemMessage(content);
    const id = message.tool_call_id ?? newMessageId();
    return toolMessage({ id, name: names.get(id) ?? "tool" }, content);
  });
}

const callsOf = ({ tool_calls }: SentMessage) =>
  (tool_calls ?? []).map(({ id, function: made }) => ({
    id,
    name: made.name,
    args: typeof made.arguments === "string" ? argumentsOf(made.arguments) : made.arguments,
  }));

/** Returns the results of the client's own tools in these messages. */
export function answersInResults(sent: readonly SentMessage[], open: readonly Interrupt[]): Answer[] {
  return open.flatMap(({ id, kind, call_id }): Answer[] => {
    const result = sent.findLast((each) => each.role === "tool" && each.tool_call_id === call_id);
    if (kind !== "tool" || !result) return [];
    const content = contentOf(result);
    return [
      { id, decision: "respond", message: typeof content === "string" ? content : JSON.stringify(content) },
    ];
  });
}
