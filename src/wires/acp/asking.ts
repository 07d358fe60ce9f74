// Asks the editor's user the questions of a run. If the editor cannot show a question, it is sent as text, and the next
// prompt answers it.

import type {
  AgentContext,
  ClientCapabilities,
  ElicitationPropertySchema,
  PermissionOption,
  RequestPermissionRequest,
} from "@agentclientprotocol/sdk";
import type { Answer, Interrupt } from "../../client/client.ts";
import { promptText } from "../../protocol/interrupt.ts";
import { shownCall } from "./tool-call.ts";

/** `cancelled`: the user stopped the turn. `words`: the editor cannot show this question. */
export type AskResult = Answer | "cancelled" | "words";

export interface QuestionContext {
  readonly editor: AgentContext;
  readonly capabilities: ClientCapabilities;
  readonly sessionId: string;
  /** When it aborts, an open question is withdrawn and counts as cancelled. */
  readonly signal: AbortSignal;
}

export async function askFor(interrupt: Interrupt, context: QuestionContext): Promise<AskResult> {
  if (context.signal.aborted) return "cancelled";
  switch (interrupt.kind) {
    case "approval":
      return permission(interrupt, context);
    case "connect":
      return consent(interrupt, context);
    case "question": {
      if (context.capabilities.elicitation?.form) return elicitation(interrupt, context);
      const canChoose = (interrupt.options ?? []).length > 0 && interrupt.args.kind !== "multi_select";
      return canChoose ? choice(interrupt, context) : "words";
    }
    case "tool":
      return {
        id: interrupt.id,
        decision: "deny",
        message: `\`${interrupt.name}\` is not available in an editor.`,
      };
  }
}

const PERMISSIONS: readonly PermissionOption[] = [
  { optionId: "once", name: "Allow", kind: "allow_once" },
  { optionId: "always", name: "Always allow in this session", kind: "allow_always" },
  { optionId: "reject", name: "Reject", kind: "reject_once" },
];

const CONSENT: readonly PermissionOption[] = [
  { optionId: "connected", name: "Connected", kind: "allow_once" },
  { optionId: "reject", name: "Continue without it", kind: "reject_once" },
];

async function permission(interrupt: Interrupt, context: QuestionContext): Promise<AskResult> {
  const { id } = interrupt;
  switch (await selected(interrupt, PERMISSIONS, context)) {
    case undefined:
      return "cancelled";
    case "once":
      return { id, decision: "approve" };
    case "always":
      return { id, decision: "approve", remember: "session" };
    default:
      return { id, decision: "deny" };
  }
}

async function consent(interrupt: Interrupt, context: QuestionContext): Promise<AskResult> {
  const { id } = interrupt;
  const optionId = await selected(interrupt, CONSENT, context);
  if (optionId === undefined) return "cancelled";
  return { id, decision: optionId === "connected" ? "approve" : "deny" };
}

async function choice(interrupt: Interrupt, context: QuestionContext): Promise<AskResult> {
  const { id, options = [] } = interrupt;
  const shown = options.map(
    (name, index): PermissionOption => ({ optionId: String(index), name, kind: "allow_once" }),
  );
  const optionId = await selected(
    interrupt,
    [...shown, { optionId: "none", name: "No answer", kind: "reject_once" }],
    context,
  );
  if (optionId === undefined) return "cancelled";
  const message = options[Number(optionId)];
  return message === undefined ? { id, decision: "deny" } : { id, decision: "respond", message };
}

/** Returns the option that the user selects, or undefined if the user stops the turn. */
async function selected(
  interrupt: Interrupt,
  options: readonly PermissionOption[],
  { editor, sessionId, signal }: QuestionContext,
): Promise<string | undefined> {
  const { call_id, name, args, asked_by } = interrupt;
  // The editor does not show a subagent's call, so the question gets its own entry.
  const call = shownCall({ id: asked_by ? interrupt.id : call_id, name, args });
  const title = titleOf(interrupt);
  const request: RequestPermissionRequest = {
    sessionId,
    toolCall: { ...call, title },
    options: [...options],
  };
  const response = await editor
    .request("session/request_permission", request, WITHDRAWN(signal))
    .catch(unlessWithdrawn(signal));
  return response?.outcome.outcome === "selected" ? response.outcome.optionId : undefined;
}

async function elicitation(
  interrupt: Interrupt,
  { editor, sessionId, signal }: QuestionContext,
): Promise<AskResult> {
  const { id, call_id, asked_by } = interrupt;
  const response = await editor
    .request(
      "elicitation/create",
      {
        mode: "form",
        sessionId,
        ...(asked_by ? {} : { toolCallId: call_id }),
        message: titleOf(interrupt),
        requestedSchema: {
          type: "object",
          properties: { answer: fieldFor(interrupt) },
          required: ["answer"],
        },
      },
      WITHDRAWN(signal),
    )
    .catch(unlessWithdrawn(signal));
  if (!response || response.action === "cancel") return "cancelled";
  const given = response.action === "accept" ? contentIn(response).answer : undefined;
  if (given === undefined) return { id, decision: "deny" };
  return { id, decision: "respond", message: Array.isArray(given) ? given.join(", ") : String(given) };
}

/** The response's type is open: other values of `action` may come with any content. */
const contentIn = ({ content }: Readonly<Record<string, unknown>>) =>
  (typeof content === "object" && content !== null ? content : {}) as { answer?: unknown };

function fieldFor({ options = [], one_of_options, args }: Interrupt): ElicitationPropertySchema {
  const title = "Answer";
  if (args.kind === "multi_select") return { type: "array", title, items: { type: "string", enum: options } };
  if (options.length > 0 && (one_of_options || args.kind === "confirm"))
    return { type: "string", title, enum: options };
  const description = options.length > 0 ? `For example: ${options.join(", ")}` : undefined;
  return { type: "string", title, ...(description ? { description } : {}) };
}

const WITHDRAWN = (signal: AbortSignal) => ({ cancellationSignal: signal, stopWaitingOnCancel: true });

const unlessWithdrawn = (signal: AbortSignal) => (error: unknown) => {
  if (signal.aborted) return undefined;
  throw error;
};

const titleOf = ({ asked_by, ...asked }: Interrupt) =>
  `${asked_by ? `${asked_by.name} asks: ` : ""}${promptText(asked)}`;

/** Returns a question as text. */
export function inWords(interrupt: Interrupt): string {
  const { options = [] } = interrupt;
  return [titleOf(interrupt), ...options.map((option) => `- ${option}`)].join("\n");
}
