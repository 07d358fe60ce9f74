// Converts a run's question to a form that an MCP client shows to its user, and reads the answer from the completed
// form. A client may also open a question's URL for its user.

import { z } from "zod";
import { firstChars } from "../../lib/text.ts";
import { decisionIn } from "../../protocol/approval-words.ts";
import { type Answer, asksToApprove, type Interrupt, promptText } from "../../protocol/interrupt.ts";

/** The maximum number of characters of the arguments to show. */
const MAX_ARGS = 2000;

/** How a client can ask its user. */
export interface Shows {
  readonly forms: boolean;
  /** True if the client can open URLs for its user. */
  readonly addresses: boolean;
}

const isOpened = ({ kind, url }: Interrupt, { addresses }: Shows) =>
  addresses && kind === "connect" && url !== undefined;

/** A form can contain every answer except the result of a front end's own tool. */
export const canShow = (question: Interrupt, shows: Shows): boolean =>
  isOpened(question, shows) || (shows.forms && question.kind !== "tool");

/**
 * Returns an id for the visit to a URL. A later question may have the same id as this one, so the time distinguishes
 * them.
 */
const visitId = (threadId: string, { id, created_at }: Interrupt) =>
  `${questionId(threadId, id)}:${Date.parse(created_at)}`;

/** The request that the server sends to a client to ask a question. */
export const askingOf = (threadId: string, question: Interrupt, shows: Shows) => ({
  jsonrpc: "2.0",
  id: questionId(threadId, question.id),
  method: "elicitation/create",
  params: isOpened(question, shows)
    ? {
        ...{ mode: "url", message: question.prompt, url: question.url },
        elicitationId: visitId(threadId, question),
      }
    : formOf(question),
});

/**
 * Notifies a client that its user has finished at a question's URL. Returns undefined if the client cannot open it.
 */
export const finishedAt = (threadId: string, question: Interrupt, shows: Shows) =>
  isOpened(question, shows)
    ? {
        jsonrpc: "2.0",
        method: "notifications/elicitation/complete",
        params: { elicitationId: visitId(threadId, question) },
      }
    : undefined;

/** The user opens the URL. The run continues automatically when the user has finished there. */
export const isUnderWay = (filled: unknown, question: Interrupt, shows: Shows): boolean =>
  isOpened(question, shows) && Filled.safeParse(filled).data?.action === "accept";

/** Returns the parameters of `elicitation/create` for a form. */
export function formOf({ kind, name, args, options = [], one_of_options, ...asked }: Interrupt) {
  const prompt = promptText(asked);
  if (asksToApprove(kind))
    return form(`${prompt}\n\n${name} ${firstChars(JSON.stringify(args), MAX_ARGS)}`, "decision", {
      decision: { type: "string", title: "Decision", enum: ["approve", "deny"] },
      reason: { type: "string", title: "Reason", description: "Reason for the denial, for the agent." },
    });
  if (one_of_options)
    return form(prompt, "answer", { answer: { type: "string", title: "Answer", enum: options } });
  const suggested = options.length > 0 ? { description: `For example: ${options.join(", ")}` } : {};
  return form(prompt, "answer", { answer: { type: "string", title: "Answer", ...suggested } });
}

const form = (message: string, needed: string, properties: object) => ({
  mode: "form",
  message,
  requestedSchema: { type: "object", properties, required: [needed] },
});

/** Returns the id of the request that asks a client. It contains the thread and the interrupt. */
export const questionId = (threadId: string, interruptId: string) => `ask:${threadId}:${interruptId}`;

const QUESTION = /^ask:([A-Za-z0-9_-]{1,128}):(.{1,256})$/s;

/** Returns the thread and the interrupt, or undefined for any other id. */
export function questionOf(
  id: unknown,
): { readonly thread_id: string; readonly interrupt_id: string } | undefined {
  const [, thread_id, interrupt_id] = QUESTION.exec(String(id)) ?? [];
  return thread_id !== undefined && interrupt_id !== undefined ? { thread_id, interrupt_id } : undefined;
}

const Filled = z.looseObject({
  action: z.enum(["accept", "decline", "cancel"]),
  content: z
    .looseObject({ decision: z.union([z.string(), z.boolean()]), reason: z.string(), answer: z.string() })
    .partial()
    .nullish(),
});

/**
 * Returns the answer in a completed form. A form that the user dismissed, or that the client could not show, denies the
 * call.
 */
export function answerIn(filled: unknown, { id, kind }: Pick<Interrupt, "id" | "kind">): Answer {
  const { action, content } = Filled.safeParse(filled).data ?? {};
  if (action !== "accept") return { id, decision: "deny", message: REFUSED[action ?? "none"] };
  const { decision, reason, answer } = content ?? {};
  if (!asksToApprove(kind))
    return answer === undefined
      ? { id, decision: "deny", message: REFUSED.none }
      : { id, decision: "respond", message: answer };
  if (decisionIn(decision) === "approve") return { id, decision: "approve" };
  return { id, decision: "deny", ...(reason ? { message: reason } : {}) };
}

const REFUSED = {
  decline: "The user declined to answer.",
  cancel: "The user dismissed the question.",
  none: "The question could not be shown to the user.",
} as const;
