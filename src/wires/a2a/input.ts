// The input of A2A clients: messages made of parts, and the answers in them.

import { z } from "zod";
import { type Content, Part } from "../../agent/core/message.ts";
import { boundedList } from "../../lib/bounded-schemas.ts";
import { check, sentence } from "../../lib/check.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { decisionIn } from "../../protocol/approval-words.ts";
import { type Answer, asksToApprove, type Interrupt } from "../../protocol/interrupt.ts";
import { A2A, RPC, RpcError } from "./errors.ts";

const SentPart = z.looseObject({
  text: z.string().optional(),
  raw: z.string().optional(),
  url: z.string().optional(),
  data: z.unknown().optional(),
  mediaType: z.string().max(256).optional(),
  filename: z.string().max(256).optional(),
});

const SentMessage = z.looseObject({
  messageId: z.string().min(1).max(256),
  contextId: z.string().max(1024).nullish(),
  taskId: z.string().max(512).nullish(),
  parts: boundedList(SentPart, 1000).min(1),
});
export type SentMessage = z.infer<typeof SentMessage>;

export const SendParams = z.looseObject({
  message: SentMessage,
  configuration: z
    .looseObject({
      returnImmediately: z.boolean().optional(),
      acceptedOutputModes: boundedList(z.string(), 100).optional(),
      historyLength: z.int().min(0).optional(),
      taskPushNotificationConfig: z.unknown().optional(),
    })
    .optional(),
});
export type SendParams = z.infer<typeof SendParams>;

export const TaskParams = z.looseObject({
  id: z.string().min(1).max(512),
  historyLength: z.int().min(0).optional(),
});

export const ListParams = z.looseObject({
  contextId: z.string().max(1024).optional(),
  status: z.string().max(64).optional(),
  pageSize: z.int().min(1).max(100).optional(),
  pageToken: z.string().max(16).optional(),
  historyLength: z.int().min(0).optional(),
  statusTimestampAfter: z.iso.datetime({ offset: true }).optional(),
  includeArtifacts: z.boolean().optional(),
});

/** Throws `RpcError` for unsupported options that would change the meaning of the request. */
export function refuseUnsupported({ configuration }: SendParams): void {
  const { taskPushNotificationConfig: push, acceptedOutputModes: modes = [] } = configuration ?? {};
  if (push !== undefined && push !== null) throw noPush();
  if (modes.length > 0 && !modes.some((mode) => mode === "*/*" || mode.startsWith("text/")))
    throw new RpcError(
      A2A.contentType,
      "acceptedOutputModes: must include `text/plain`, the only type in which agents answer.",
    );
}

export const noPush = () =>
  new RpcError(A2A.push, "Push notifications are not supported. Use SubscribeToTask or GetTask.");

/** Returns the content of a message. Throws `RpcError` for a part with a URL, because the server fetches nothing. */
export function contentOf({ parts }: SentMessage): Content {
  const content = parts.map(partOf);
  const [first] = content;
  return content.length === 1 && first?.type === "text" ? first.text : content;
}

function partOf({
  text,
  raw,
  url,
  data,
  mediaType = "",
  filename: name,
}: SentMessage["parts"][number]): Part {
  if (text !== undefined) return { type: "text", text };
  if (url !== undefined)
    throw new RpcError(
      A2A.contentType,
      "Parts with a `url` are not supported, because the server fetches nothing. Send the data as `raw`.",
    );
  if (raw !== undefined) {
    const isImage = /^image\/(png|jpeg|gif|webp)$/.test(mediaType);
    const part = { type: isImage ? "image" : "file", media_type: mediaType, data: raw };
    const checked = check(Part, isImage ? part : { ...part, ...omitUndefined({ name: name || undefined }) });
    if ("value" in checked) return checked.value;
    throw new RpcError(
      A2A.contentType,
      `A part of type \`${mediaType}\`: ${checked.faults.map((fault) => sentence(fault)).join(", ")}.`,
    );
  }
  if (data !== undefined) return { type: "text", text: JSON.stringify(data) };
  throw new RpcError(RPC.invalidParams, "message.parts: each part must have `text`, `raw` or `data`.");
}

const OneAnswer = z.looseObject({
  id: z.string().optional(),
  approved: z.boolean().optional(),
  answer: z.string().optional(),
  reason: z.string().optional(),
  args: z.record(z.string(), z.unknown()).optional(),
});
const Data = OneAnswer.extend({ answers: boundedList(OneAnswer, 1000).optional() });

/**
 * Returns the answers in a message to a waiting task: the data for each question. A message
 * without data answers the first question with its text.
 */
export function responsesIn({ parts }: SentMessage, open: readonly Interrupt[]): Answer[] {
  const [first] = open;
  if (!first) return [];
  const [data] = parts.flatMap((part) => {
    const read = Data.safeParse(part.data);
    return read.success ? [read.data] : [];
  });
  if (data) {
    const given = data.answers ?? [data];
    const answers = given.flatMap((each, index) => {
      const interrupt = each.id === undefined ? open[index] : open.find(({ id }) => id === each.id);
      return interrupt ? answerTo(interrupt, each) : [];
    });
    if (answers.length > 0) return answers;
    throw new RpcError(
      RPC.invalidParams,
      "message.parts: the data answers no open question. Send {approved}, {answer} or {answers: [{id, …}]}.",
    );
  }
  const text = parts.flatMap((part) => part.text ?? []).join("\n");
  if (!asksToApprove(first.kind)) return [{ id: first.id, decision: "respond", message: text }];
  const decision = decisionIn(text);
  return [decision ? { id: first.id, decision } : { id: first.id, decision: "deny", message: text }];
}

function answerTo({ id, kind }: Interrupt, given: z.infer<typeof OneAnswer>): Answer[] {
  const { approved, answer, reason, args } = given;
  if (!asksToApprove(kind)) {
    if (answer !== undefined) return [{ id, decision: "respond", message: answer }];
    return approved === false ? [{ id, decision: "deny", ...omitUndefined({ message: reason }) }] : [];
  }
  if (approved === undefined) return [];
  if (!approved) return [{ id, decision: "deny", ...omitUndefined({ message: reason ?? answer }) }];
  return [args ? { id, decision: "edit", args } : { id, decision: "approve" }];
}
