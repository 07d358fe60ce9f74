// Reads the input of Responses clients: new items, or the whole conversation as items, including calls and their
// results.

import { z } from "zod";
import {
  type AssistantMessage,
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
import { newCallId } from "../../../agent/core/new-ids.ts";
import { Metadata } from "../../../agent/core/records.ts";
import { boundedList } from "../../../lib/bounded-schemas.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { mapInTicks } from "../../../lib/ticks.ts";
import { type Answer, asksToApprove, type Interrupt } from "../../../protocol/interrupt.ts";
import { readDataUrl } from "../../messages.ts";
import {
  argumentsOf,
  contentFrom,
  isSystem,
  outputSchema,
  partFrom,
  refused,
  thinkingOf,
  wordsOf,
} from "../given.ts";
import type { RequestText } from "../side-requests.ts";
import { choiceOf, type FunctionChoice } from "../tool-choice.ts";
import { approvalIdOf, askedCallOf } from "./ids.ts";

const SentPart = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  image_url: z.string().nullish(),
  file_data: z.string().nullish(),
  filename: z.string().nullish(),
});
type SentPart = z.infer<typeof SentPart>;
const Output = z.union([z.string(), boundedList(SentPart, 1000)]);

export const SentItem = z.looseObject({
  type: z.string().optional(),
  role: z.enum(["system", "developer", "user", "assistant"]).optional(),
  content: z.union([z.string(), boundedList(SentPart, 1000)]).nullish(),
  call_id: z.string().min(1).max(512).optional(),
  name: z.string().optional(),
  arguments: z.string().optional(),
  output: Output.nullish(),
  approval_request_id: z.string().max(512).nullish(),
  approve: z.boolean().optional(),
  reason: z.string().max(100_000).nullish(),
  summary: boundedList(SentPart, 1000).nullish(),
});
export type SentItem = z.infer<typeof SentItem>;
/** Items that are added to a conversation at once. */
export const SentItems = boundedList(SentItem, 1000);

const SentTool = z.looseObject({
  type: z.string(),
  name: z.string().optional(),
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
});

export const ResponseBody = z.looseObject({
  model: z.string().min(1).max(256).nullish().describe("Name of an agent."),
  input: z.union([z.string(), boundedList(SentItem, 10_000)]).nullish(),
  instructions: z
    .string()
    .nullish()
    .describe("Added as a system message unless the conversation already contains it."),
  previous_response_id: z.string().min(1).max(512).nullish(),
  conversation: z
    .union([z.string().min(1).max(256), z.looseObject({ id: z.string().min(1).max(256) })])
    .nullish(),
  stream: z.boolean().nullish(),
  background: z.boolean().nullish(),
  store: z.boolean().nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  max_output_tokens: z.int().min(1).nullish(),
  reasoning: z.looseObject({ effort: z.string().nullish() }).nullish(),
  tools: boundedList(SentTool, 64).nullish(),
  tool_choice: z.unknown().optional(),
  text: z
    .looseObject({
      format: z
        .looseObject({ type: z.string(), schema: z.record(z.string(), z.unknown()).optional() })
        .nullish(),
    })
    .nullish(),
  prompt: z.unknown().optional(),
  max_tool_calls: z.unknown().optional(),
  metadata: Metadata.nullish(),
  user: z.unknown().optional().describe("Ignored: the credentials identify the user."),
});
export type ResponseBody = z.infer<typeof ResponseBody>;

const isGiven = (value: unknown) => value !== undefined && value !== null;

/** Throws `invalid_request` for unsupported options that would change the meaning of the request. */
export function refuseUnsupported(body: ResponseBody): void {
  const { tools, prompt, max_tool_calls, background, store } = body;
  const foreign = (tools ?? []).findIndex(({ type }) => type !== "function");
  if (foreign >= 0)
    throw refused(
      `tools[${foreign}]`,
      `\`${tools?.[foreign]?.type}\` is not supported. The operator configures the agent's tools. Send only \`function\` tools.`,
    );
  if (isGiven(prompt))
    throw refused("prompt", "is not supported. The operator configures the agent's prompt.");
  if (isGiven(max_tool_calls))
    throw refused("max_tool_calls", "is not supported. The operator configures the agent's limits.");
  if (isGiven(body.previous_response_id) && isGiven(body.conversation))
    throw refused("previous_response_id", "is not allowed together with `conversation`.");
  if (background && store === false)
    throw refused(
      "background",
      "is not allowed with `store: false`, because the response could not be read later.",
    );
}

export const schemaOf = ({ text }: ResponseBody) =>
  text?.format ? outputSchema(text.format, text.format.schema, "text.format") : undefined;

/** Throws `invalid_request`. */
export const choiceIn = ({ tools, tool_choice }: ResponseBody): FunctionChoice =>
  choiceOf(
    (tools ?? []).map(({ name = "", ...given }) => ({ name, ...given })),
    tool_choice,
  );

export const settingsOf = (
  { temperature, max_output_tokens, reasoning }: ResponseBody,
  { tool_choice }: FunctionChoice,
): ModelSettings =>
  omitUndefined({
    temperature: temperature ?? undefined,
    max_tokens: max_output_tokens ?? undefined,
    thinking: thinkingOf(reasoning?.effort),
    tool_choice,
  });

/** Returns the items of a request. A text becomes a user message. */
export function itemsOf({ input }: ResponseBody): readonly SentItem[] {
  if (typeof input !== "string") return input ?? [];
  return [{ role: "user", content: input }];
}

/** Returns the text by which side requests are recognized. */
export function askedIn(body: ResponseBody): RequestText {
  const said = itemsOf(body).filter(({ role }) => !isSystem(role ?? ""));
  return { text: wordsOf(said.findLast(({ role }) => role === "user")?.content), isAlone: said.length === 1 };
}

const typeOf = ({ type, role }: SentItem) => type ?? (role ? "message" : "");

/** The items that a client received from this server and sends back. The server already has their content. */
const REPLAYED: ReadonlySet<string> = new Set([
  "reasoning",
  "mcp_call",
  "mcp_list_tools",
  "mcp_approval_request",
  "item_reference",
]);
const ANSWERS: ReadonlySet<string> = new Set(["function_call_output", "mcp_approval_response"]);

export const isMessage = (item: SentItem) => typeOf(item) === "message";
export const isAnswer = (item: SentItem) => ANSWERS.has(typeOf(item));

/** Items that may appear between the text and the calls of one message. */
const WITHIN_MESSAGE: ReadonlySet<string> = new Set(["reasoning", "item_reference"]);

interface MessagesOptions {
  /** The field that contains the items. */
  readonly param?: string;
  /** Keeps reasoning and server calls as well, because the thread does not have them. */
  readonly isWhole?: boolean;
}

/**
 * Converts the items to messages of a thread. Text and calls that the model wrote together become one message. Many items
 * take several ticks of the event loop.
 */
export async function messagesOf(
  tenant: string,
  items: readonly SentItem[],
  { param = "input", isWhole = false }: MessagesOptions = {},
): Promise<Message[]> {
  const names = new Map(items.map(({ call_id, name }) => [call_id, name]));
  const read = await mapInTicks(tenant, items, (item, index): readonly Message[] => {
    const type = typeOf(item);
    const { call_id = "", name = "" } = item;
    if (isMessage(item)) return [messageFrom(item, `${param}[${index}]`)];
    if (type === "function_call")
      return [assistantMessage("", { id: call_id, name, args: argumentsOf(item.arguments ?? "") })];
    if (type === "function_call_output")
      return [toolMessage({ id: call_id, name: names.get(call_id) ?? "tool" }, outputOf(item, param))];
    if (isWhole && type === "mcp_call") return serverCall(item);
    if (isWhole && type === "reasoning") return [thought(item)];
    if (REPLAYED.has(type) || type === "mcp_approval_response") return [];
    throw refused(
      `${param}[${index}]`,
      `items of type \`${type}\` are not supported. Use message, function_call, function_call_output or mcp_approval_response.`,
    );
  });
  const messages: Message[] = [];
  let turn: AssistantMessage[] = [];
  const endTurn = () => {
    const said = joined(turn);
    if (said.content || said.tool_calls) messages.push(said);
    turn = [];
  };
  for (const [index, made] of read.entries()) {
    if (made.length === 0 && !WITHIN_MESSAGE.has(typeOf(items[index] ?? {}))) endTurn();
    for (const message of made) {
      if (message.role === "assistant") turn.push(message);
      else {
        endTurn();
        messages.push(message);
      }
    }
  }
  endTurn();
  return messages;
}

function joined(said: readonly AssistantMessage[]): AssistantMessage {
  const reasoning = said.flatMap((each) => each.reasoning ?? []);
  const message = assistantMessage(
    said.flatMap(({ content }) => content || []).join("\n\n"),
    ...said.flatMap(({ tool_calls = [] }) => tool_calls),
  );
  return reasoning.length > 0 ? { ...message, reasoning } : message;
}

const thought = ({ summary }: SentItem): AssistantMessage => ({
  ...assistantMessage(""),
  reasoning: (summary ?? []).flatMap(({ text }) => (text ? [{ text }] : [])),
});

/** Returns a call that a server has executed, with its result. */
function serverCall(item: SentItem): Message[] {
  const { name = "", error } = item;
  if (name === "" || (item.output === undefined && !error)) return [];
  const call = { id: newCallId(), name, args: argumentsOf(item.arguments ?? "") };
  return [
    assistantMessage("", call),
    toolMessage(call, outputOf(item, "items"), error ? failureOf(error) : undefined),
  ];
}

const Failure = z.looseObject({ content: boundedList(SentPart, 100) });

const failureOf = (error: unknown): string =>
  typeof error === "string"
    ? error
    : wordsOf(Failure.safeParse(error).data?.content) || JSON.stringify(error);

function messageFrom({ role, content }: SentItem, param: string): Message {
  if (role === undefined) throw refused(`${param}.role`, "must be user, system, developer or assistant.");
  const read = contentOf(content ?? "", param);
  if (role === "assistant") return assistantMessage(textOf(read));
  return isSystem(role) ? systemMessage(read) : userMessage(read);
}

function contentOf(content: string | readonly SentPart[], param: string): Content {
  if (typeof content === "string") return content;
  return contentFrom(content, (part, index) => partOf(part, `${param}.content[${index}]`));
}

const TEXTS: ReadonlySet<string> = new Set(["input_text", "output_text", "text"]);

function partOf({ type, text, image_url, file_data, filename }: SentPart, param: string): Part {
  if (TEXTS.has(type) && text !== undefined) return partFrom({ type: "text", text }, param);
  if (type === "refusal") return partFrom({ type: "text", text: "(refused)" }, param);
  if (type === "input_image" && image_url)
    return partFrom({ type: "image", ...readDataUrl(image_url) }, param);
  if (type === "input_file" && file_data)
    return partFrom(
      { type: "file", ...readDataUrl(file_data), ...(filename ? { name: filename } : {}) },
      param,
    );
  throw refused(
    param,
    `a part of type \`${type}\` is not supported in this form. Use input_text, input_image with image_url or input_file with file_data, as \`data:\` URLs.`,
  );
}

const outputOf = ({ output }: SentItem, param: string): Content => contentOf(output ?? "", param);

/** Throws `invalid_request` for system messages if the server refuses them. */
export function refuseSystem(items: readonly SentItem[], param: string): void {
  if (!items.some(({ role }) => isSystem(role ?? ""))) return;
  throw refused(param, "this server accepts no `system` messages from users. Use `user`.");
}

/** Returns the answers in these items to a thread's open questions. */
export function responsesIn(items: readonly SentItem[], open: readonly Interrupt[]): Answer[] {
  return open.flatMap((question): Answer[] => {
    const { id, kind } = question;
    if (asksToApprove(kind)) {
      const sent = items.findLast(
        ({ approval_request_id }) => approval_request_id === approvalIdOf(question),
      );
      return sent?.approve === undefined ? [] : [decisionOf(id, sent)];
    }
    const sent = items.findLast(
      (item) => typeOf(item) === "function_call_output" && item.call_id === askedCallOf(question),
    );
    return sent && kind === "tool"
      ? [{ id, decision: "respond", message: textOf(outputOf(sent, "input")) }]
      : [];
  });
}

function decisionOf(id: string, { approve, reason }: SentItem): Answer {
  if (approve) return { id, decision: "approve" };
  return { id, decision: "deny", ...(reason ? { message: reason } : {}) };
}
