// A result that was delivered from outside, as the thread gets it: in the call's place, or in a message of its own when the
// thread has continued without it.

import { isObject } from "../../lib/json.ts";
import { firstChars, lastChars } from "../../lib/text.ts";
import { type DeferredCall, hasResult } from "./deferred-calls.ts";
import { type Message, textOf, type UserMessage, unanswered, userMessage } from "./message.ts";
import type { RunStatus } from "./records.ts";
import { type DoneResult, done, failed } from "./tool.ts";

/** Of a text. No hook sees these results, so they are bounded here. */
const MAX_CHARS = 80_000;

/** The stand-in for the result of a call that was running when the server stopped. */
export const OUTCOME_UNKNOWN =
  "Outcome unknown: the server stopped while this call was running. It may have taken effect; check before repeating it.";

/** The result of a call that was not started. */
export const NOT_RUN = "Not run: the run ended before it.";

export const deliveredResult = (call: DeferredCall): DoneResult => ({
  ...(replyResult(call.reply) ?? failed("The tool's server delivered nothing.")),
  message_id: deliveryId(call),
});

/** The same, bounded, for a thread that takes it outside of a tool call. */
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

/** A late result, for the thread. The same call gives a message of the same id, so that the thread holds it once. */
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

/** The id of the message with a delivered result, as the call's result or after it: the thread holds it once. */
const deliveryId = ({ token_hash }: DeferredCall) => `msg_${token_hash.slice(0, 22)}`;

/**
 * The next step for a call that is due, on a thread with these messages. `ended` is the status of its newest run. `resume`: the call
 * waits. `tell`: the thread lacks the delivered result. `ask`: it has the result, and no model has read it. `forget`: all is done.
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
  // A run that has given its answer puts what comes after it into the thread, unread. One that failed or was cancelled is not begun again.
  return isRead || ended !== "success" ? "forget" : "ask";
}

/** What a tool's server answers, `{result}` or `{error}`, as a result; undefined when it is neither. Other than text becomes JSON. */
export function replyResult(reply: unknown): DoneResult | undefined {
  if (!isObject(reply)) return undefined;
  const result = Object.hasOwn(reply, "result") ? reply.result : undefined;
  const error = Object.hasOwn(reply, "error") ? reply.error : undefined;
  // Some languages send an empty error for a success.
  const isFailure = error !== undefined && error !== null && error !== "" && error !== false;
  if (!isFailure && result === undefined) return undefined;
  const output = result === undefined ? "" : replyText(result);
  return isFailure ? failed(replyText(error), output) : done(output);
}

/** A value as the model reads it. */
export function replyText(value: unknown): string {
  if (typeof value === "string") return value;
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "(nested too deeply to be shown)";
  }
}
