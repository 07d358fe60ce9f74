// Turns a result that was delivered from outside into a message: the tool result, or a separate message when the thread has
// continued without it.

import { isObject } from "../../lib/json.ts";
import { firstChars, lastChars } from "../../lib/text.ts";
import { type DeferredCall, hasResult } from "./deferred-calls.ts";
import { type Message, textOf, type UserMessage, unanswered, userMessage } from "./message.ts";
import type { RunStatus } from "./records.ts";
import { type DoneResult, done, failed } from "./tool.ts";

/** The maximum number of characters in a text. Hooks do not see these results, so this file limits them. */
const MAX_CHARS = 80_000;

/** The result of a call that was running when the server stopped. */
export const OUTCOME_UNKNOWN =
  "Outcome unknown: the server stopped while this call was running. It may have taken effect; check before repeating it.";

/** The result of a call that never started. */
export const NOT_RUN = "Not run: the run ended before this call started.";

export const deliveredResult = (call: DeferredCall): DoneResult => ({
  ...(replyResult(call.reply) ?? failed("The tool's server delivered nothing.")),
  message_id: deliveryId(call),
});

/** Shortens a call's result to the length limit, for a thread that accepts it outside a tool call. */
export function boundedResult(call: DeferredCall): DoneResult {
  const { output, error, ...result } = deliveredResult(call);
  const text = bounded(textOf(output));
  return { ...result, output: text, ...(error === undefined ? {} : { error: bounded(error) }) };
}

function bounded(text: string): string {
  if (text.length <= MAX_CHARS) return text;
  const [start, end] = [firstChars(text, MAX_CHARS / 2), lastChars(text, MAX_CHARS / 2)];
  return `${start}\n\n... (truncated ${text.length - start.length - end.length} characters) ...\n\n${end}`;
}

/**
 * Returns a late result as a message. A call always produces the same message id, so the thread contains the
 * message only once.
 */
export function lateMessage(call: DeferredCall): UserMessage {
  const { output, error } = boundedResult(call);
  const about = `the call \`${call.call_id}\` of \`${call.tool}\``;
  const text = [
    `[Not written by the user: the result of ${about}, which was pending, has been delivered.]`,
    ...(error === undefined ? [] : [`The call failed: ${error}`]),
    textOf(output),
  ];
  return { ...userMessage(text.filter(Boolean).join("\n\n")), id: deliveryId(call) };
}

/**
 * Returns the message id of a delivered result. The id is the same for the tool result and for a separate
 * message, so the thread contains the result only once.
 */
const deliveryId = ({ token_hash }: DeferredCall) => `msg_${token_hash.slice(0, 22)}`;

/**
 * Returns the next step for a due call. `ended` is the status of the thread's most recent run. `resume`: the
 * call still waits. `tell`: the thread lacks the delivered result. `ask`: the thread has the result, but no
 * model has read it. `forget`: nothing is left to do.
 */
export function nextStep(
  call: DeferredCall,
  messages: readonly Message[],
  ended: RunStatus | undefined,
): "resume" | "tell" | "ask" | "forget" {
  if (call.state !== "late" && unanswered(messages).some(({ id }) => id === call.call_id)) return "resume";
  if (!hasResult(call.state)) return "forget";
  const at = messages.findIndex(({ id }) => id === deliveryId(call));
  if (at === -1) return "tell";
  if (messages[at]?.role === "tool") return "forget";
  const isRead = messages.slice(at).some(({ role }) => role === "assistant");
  // A result that arrives after the run's final answer joins the thread unread, so the model must still be
  // called. A failed or cancelled run does not start again.
  return isRead || ended !== "success" ? "forget" : "ask";
}

/**
 * Converts `{result}` or `{error}` from a tool's server to a tool result. Returns undefined for anything
 * else. Values other than text become JSON.
 */
export function replyResult(reply: unknown): DoneResult | undefined {
  if (!isObject(reply)) return undefined;
  const result = Object.hasOwn(reply, "result") ? reply.result : undefined;
  const error = Object.hasOwn(reply, "error") ? reply.error : undefined;
  // Some languages serialize "no error" as an empty value.
  const isFailure = error !== undefined && error !== null && error !== "" && error !== false;
  if (!isFailure && result === undefined) return undefined;
  const output = result === undefined ? "" : replyText(result);
  return isFailure ? failed(replyText(error), output) : done(output);
}

/** Formats a value for the model. */
export function replyText(value: unknown): string {
  if (typeof value === "string") return value;
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "(nested too deeply to be shown)";
  }
}
