// Reads the input in UI messages: the user's message, the answers in an assistant message's parts, and the page's
// tools.

import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { type Content, Part } from "../../agent/core/message.ts";
import type { ClientTool } from "../../agent/core/records.ts";
import { boundedList, boundedMap } from "../../lib/bounded-schemas.ts";
import { check, sentence } from "../../lib/check.ts";
import { type Answer, asksToApprove, type Interrupt } from "../../protocol/interrupt.ts";
import { clientToolsOf } from "../client-tools.ts";
import { readDataUrl } from "../messages.ts";

const UIPart = z.looseObject({ type: z.string() });
export type UIPart = z.infer<typeof UIPart>;

export const UIMessage = z.looseObject({
  id: z.string().max(256).optional(),
  role: z.enum(["system", "user", "assistant"]),
  parts: boundedList(UIPart, 10_000).default([]),
});
export type UIMessage = z.infer<typeof UIMessage>;

export const ChatBody = z.looseObject({
  id: z.string().min(1).max(1024).describe("Id of the chat, which is also the thread's id."),
  messages: boundedList(UIMessage, 10_000).default([]),
  message: UIMessage.optional().describe("The newest message alone, for pages that do not send the list."),
  trigger: z.enum(["submit-message", "regenerate-message"]).default("submit-message"),
  messageId: z.string().nullish(),
  tools: boundedMap(
    z.string().max(256),
    z.looseObject({ description: z.string().default(""), parameters: z.unknown().optional() }),
    64,
  ).optional(),
});
export type ChatBody = z.infer<typeof ChatBody>;

/**
 * Returns the content of a user's message. Throws `invalid_request` if it is empty or contains a file without a `data:`
 * URL.
 */
export function contentOf({ parts }: UIMessage): Content {
  const content = parts.flatMap(partOf);
  const [first] = content;
  if (!first) throw new AppError("invalid_request", "messages: the user's message is empty.");
  return content.length === 1 && first.type === "text" ? first.text : content;
}

function partOf(part: UIPart): Part[] {
  const { type, text, mediaType, url, filename: name } = part;
  if (type === "text" && typeof text === "string") return text === "" ? [] : [{ type, text }];
  const isFile = type === "file" && typeof mediaType === "string" && typeof url === "string";
  if (!isFile || !(name === undefined || typeof name === "string")) return [];
  const { media_type, data } = readDataUrl(url);
  const isImage = /^image\/(png|jpeg|gif|webp)$/.test(media_type);
  const checked = check(
    Part,
    isImage
      ? { type: "image", media_type, data }
      : { type: "file", media_type, data, ...(name ? { name } : {}) },
  );
  if ("value" in checked) return [checked.value];
  throw new AppError(
    "invalid_request",
    `messages: a file of type \`${media_type}\`: ${checked.faults.map((fault) => sentence(fault)).join(", ")}.`,
  );
}

/** Returns the tools that the page executes. */
export function clientTools({ tools = {} }: ChatBody): ClientTool[] | undefined {
  const described = Object.entries(tools).map(([name, tool]) => ({ name, ...tool }));
  return clientToolsOf(
    described,
    (index, fault) => new AppError("invalid_request", `tools: \`${described[index]?.name}\` ${fault}.`),
  );
}

export const ToolPart = z.looseObject({
  toolCallId: z.string(),
  state: z.string(),
  output: z.unknown().optional(),
  errorText: z.string().optional(),
  approval: z
    .looseObject({ id: z.string(), approved: z.boolean().optional(), reason: z.string().optional() })
    .optional(),
});

/** Returns the answers in the parts of an assistant message to the thread's open questions. */
export function responsesIn({ parts }: UIMessage, open: readonly Interrupt[]): Answer[] {
  // Filtered first, because most parts are not calls, and checking a part that does not match takes a long time.
  const calls = parts.filter(
    ({ toolCallId, state }) => typeof toolCallId === "string" && typeof state === "string",
  );
  const given = calls.flatMap((part) => ToolPart.safeParse(part).data ?? []);
  return open.flatMap((interrupt) => {
    const { id, call_id, kind, asked_by } = interrupt;
    const part = asksToApprove(kind)
      ? given.find(({ approval }) => approval?.id === id)
      : given.find(({ toolCallId }) => toolCallId === (asked_by ? id : call_id));
    const answer = part && answerOf(part, interrupt);
    return answer ? [answer] : [];
  });
}

function answerOf(
  { state, approval, output, errorText }: z.infer<typeof ToolPart>,
  { id, kind }: Interrupt,
): Answer | undefined {
  if (asksToApprove(kind)) {
    if (approval?.approved === undefined) return undefined;
    if (approval.approved) return { id, decision: "approve" };
    return { id, decision: "deny", ...(approval.reason ? { message: approval.reason } : {}) };
  }
  if (state === "output-available") {
    const message = typeof output === "string" ? output : JSON.stringify(output ?? null);
    return { id, decision: "respond", message };
  }
  return state === "output-error" ? { id, decision: "deny", message: errorText ?? "It failed." } : undefined;
}
