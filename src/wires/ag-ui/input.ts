// Reads a RunAgentInput: the user's messages, the answers to open questions, the client's tools and its context.

import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { type Content, Part, type SystemMessage, systemMessage } from "../../agent/core/message.ts";
import { newMessageId } from "../../agent/core/new-ids.ts";
import type { ClientTool } from "../../agent/core/records.ts";
import { boundedList } from "../../lib/bounded-schemas.ts";
import { check, sentence } from "../../lib/check.ts";
import { decisionIn } from "../../protocol/approval-words.ts";
import { type Answer, asksToApprove, type Interrupt } from "../../protocol/interrupt.ts";
import { clientToolsOf } from "../client-tools.ts";

const SentCall = z.looseObject({ id: z.string() });
const SentMessage = z.looseObject({
  id: z.string().max(256).nullish(),
  role: z.string().max(64),
  content: z.unknown().optional(),
  toolCalls: boundedList(SentCall, 1000).nullish(),
  toolCallId: z.string().nullish(),
  error: z.string().nullish(),
});
export type SentMessage = z.infer<typeof SentMessage>;

const ResumeEntry = z.looseObject({
  interruptId: z.string().min(1).max(1024),
  status: z.enum(["resolved", "cancelled"]),
  payload: z.unknown().optional(),
});

export const RunAgentInput = z.looseObject({
  threadId: z.string().min(1).max(1024).describe("Id of the thread."),
  runId: z.string().min(1).max(1024).describe("The client's own id for the run. Events contain it."),
  protocolVersion: z.string().max(64).nullish().describe("Sent by clients from version 1.0 on."),
  messages: boundedList(SentMessage, 10_000).default([]),
  tools: z
    .array(
      z.looseObject({
        name: z.string().max(256),
        description: z.string().nullish(),
        parameters: z.record(z.string(), z.unknown()).nullish(),
      }),
    )
    .max(64)
    .nullish(),
  context: boundedList(z.looseObject({ description: z.string(), value: z.string() }), 1000)
    .nullish()
    .describe("Context for the agent. Skein reads it when the thread starts."),
  forwardedProps: z
    .unknown()
    .optional()
    .describe("Skein reads only the key `on_disconnect`, which can be `cancel` or `continue`."),
  resume: boundedList(ResumeEntry, 1000).nullish(),
});
export type RunAgentInput = z.infer<typeof RunAgentInput>;

/** Returns true if the client supports the events of 1.0. Older clients send no version and fail on an unknown type. */
export const isCurrent = ({ protocolVersion }: RunAgentInput) => /^[1-9]\d*\.\d/.test(protocolVersion ?? "");

const Props = z.looseObject({ on_disconnect: z.enum(["cancel", "continue"]).default("cancel") });

/** Throws `invalid_request` for values other than `cancel` and `continue`. */
export function cancelsOnLeave({ forwardedProps }: RunAgentInput): boolean {
  const checked = check(Props, forwardedProps ?? {});
  if ("value" in checked) return checked.value.on_disconnect === "cancel";
  const [fault] = checked.faults;
  throw refused(`forwardedProps: ${fault ? sentence(fault) : "is refused"}.`);
}

const refused = (message: string) => new AppError("invalid_request", message);

const Text = z.looseObject({ type: z.literal("text"), text: z.string() });
const Medium = z.looseObject({
  type: z.enum(["image", "audio", "video", "document"]),
  source: z.looseObject({ type: z.string(), value: z.string(), mimeType: z.string().optional() }),
  metadata: z.unknown().optional(),
});
const Binary = z.looseObject({
  type: z.literal("binary"),
  mimeType: z.string(),
  data: z.string().optional(),
  filename: z.string().optional(),
});
const SentPart = z.discriminatedUnion("type", [Text, Medium, Binary]);
const SentContent = z.union([z.string(), boundedList(SentPart, 1000)]);
const Named = z.looseObject({ filename: z.string().min(1) });

/** Returns the content of a message. Throws `invalid_request` if it is empty, or if a media part has no data. */
export function contentOf({ content, role }: SentMessage): Content {
  const sent = SentContent.safeParse(content).data;
  if (sent === undefined)
    throw refused(
      `messages: the content of role \`${role}\` must be a string, or a list of parts of the types text, image, audio, video, document or binary.`,
    );
  if (typeof sent === "string") {
    if (sent === "") throw refused(`messages: the message of role \`${role}\` is empty.`);
    return sent;
  }
  const parts = sent.flatMap(partOf);
  const [first] = parts;
  if (!first) throw refused(`messages: the message of role \`${role}\` is empty.`);
  return parts.length === 1 && first.type === "text" ? first.text : parts;
}

function partOf(part: z.infer<typeof SentPart>): Part[] {
  if (part.type === "text") return part.text === "" ? [] : [{ type: "text", text: part.text }];
  if (part.type === "binary") return [mediumOf(part.mimeType, part.data, part.filename)];
  const { source, metadata } = part;
  const data = source.type === "data" ? source.value : undefined;
  return [mediumOf(source.mimeType, data, Named.safeParse(metadata).data?.filename)];
}

function mediumOf(media_type: string | undefined, data: string | undefined, name: string | undefined): Part {
  if (media_type === undefined || data === undefined)
    throw refused("messages: media must contain their data in base64, because the server fetches nothing.");
  const isImage = /^image\/(png|jpeg|gif|webp)$/.test(media_type);
  const checked = check(
    Part,
    isImage
      ? { type: "image", media_type, data }
      : { type: "file", media_type, data, ...(name ? { name } : {}) },
  );
  if ("value" in checked) return checked.value;
  throw refused(
    `messages: a medium of type \`${media_type}\`: ${checked.faults.map((fault) => sentence(fault)).join(", ")}.`,
  );
}

/** Returns the first messages of a new thread: the client's instructions and its context. */
export function openingOf({ messages, context }: RunAgentInput): SystemMessage[] {
  const instructions = messages
    .filter(({ role }) => role === "system" || role === "developer")
    .map((message) => ({ ...systemMessage(contentOf(message)), id: message.id || newMessageId() }));
  if (!context || context.length === 0) return instructions;
  const told = context.map(({ description, value }) => `${description}:\n${value}`).join("\n\n");
  return [...instructions, systemMessage(told)];
}

/** Returns the tools that the client executes. */
export const clientTools = ({ tools }: RunAgentInput): ClientTool[] | undefined =>
  clientToolsOf(tools ?? [], (index, fault) => refused(`tools: \`${tools?.[index]?.name}\` ${fault}.`));

/**
 * Returns the input's answers to the thread's open questions: those in `resume`, and the results of the client's tools.
 * Throws `interrupt_closed` if an entry of `resume` matches no open question.
 */
export function responsesIn({ resume, messages }: RunAgentInput, open: readonly Interrupt[]): Answer[] {
  const resumed = (resume ?? []).map((entry) => {
    const interrupt = open.find(({ id }) => id === entry.interruptId);
    if (interrupt) return answerOf(entry, interrupt);
    throw new AppError(
      "interrupt_closed",
      `resume: interrupt \`${entry.interruptId.slice(0, 128)}\` is closed: it was already answered or its run has ended.`,
    );
  });
  const results = open.flatMap((interrupt) =>
    interrupt.kind === "tool" ? resultOf(interrupt, messages) : [],
  );
  const known = new Set(resumed.map(({ id }) => id));
  return [...resumed, ...results.filter(({ id }) => !known.has(id))];
}

const Decision = z.looseObject({
  approved: z.boolean(),
  reason: z.string().nullish(),
  editedArgs: z.record(z.string(), z.unknown()).nullish(),
});
const Reply = z.looseObject({ answer: z.string() });

function answerOf({ status, payload }: z.infer<typeof ResumeEntry>, { id, kind }: Interrupt): Answer {
  if (status === "cancelled") return { id, decision: "deny", message: "The user cancelled this." };
  if (!asksToApprove(kind)) {
    const message = Reply.safeParse(payload).data?.answer ?? payload;
    return { id, decision: "respond", message: typeof message === "string" ? message : jsonOf(message) };
  }
  const decision = decisionIn(payload);
  if (decision) return { id, decision };
  const said = Decision.safeParse(payload).data;
  if (!said)
    throw refused(
      "resume: the `payload` of an approval must be {approved: boolean, reason?: string, editedArgs?: object}, or a word such as `approve` or `deny`.",
    );
  if (!said.approved) return { id, decision: "deny", ...(said.reason ? { message: said.reason } : {}) };
  return said.editedArgs ? { id, decision: "edit", args: said.editedArgs } : { id, decision: "approve" };
}

const jsonOf = (value: unknown) => JSON.stringify(value ?? null);

/** Returns the result of a client tool call: the newest result after the message that made the call. */
function resultOf({ id, call_id }: Interrupt, messages: readonly SentMessage[]): Answer[] {
  const made = messages.findLastIndex(({ toolCalls }) => toolCalls?.some((call) => call.id === call_id));
  const result = messages
    .slice(made + 1)
    .findLast(({ role, toolCallId }) => role === "tool" && toolCallId === call_id);
  if (!result) return [];
  if (result.error) return [{ id, decision: "deny", message: result.error }];
  const { content } = result;
  return [{ id, decision: "respond", message: typeof content === "string" ? content : jsonOf(content) }];
}
