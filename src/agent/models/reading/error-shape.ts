// Finds errors that arrive as events of a stream, or as a whole response with status 200. Servers wrap errors in many
// ways.

import { isObject } from "../../../lib/json.ts";
import type { ProviderEvent } from "../reply.ts";

/** Returns the error in an event, in the provider's format, or undefined for any other event. */
export function errorIn(event: ProviderEvent): unknown {
  const { error, type, object, base_resp: status, choices, message } = event;
  if (saysSomething(error) || type === "error" || object === "error") return event;
  if (isObject(status) && status.status_code) return status; // MiniMax
  if (Array.isArray(choices) && choices.length > 0) return undefined;
  // The `message` of Anthropic's `message_start` is not text.
  const hasWords = typeof message === "string" || WORDS.some((key) => saysSomething(event[key]));
  return hasWords ? event : undefined;
}

/** The fields in which servers send their message if they do not use an `error` field. */
const WORDS = ["detail", "errors", "error_message", "error_msg", "msg"] as const;

const saysSomething = (value: unknown) =>
  typeof value === "object" && value !== null
    ? Object.keys(value).length > 0
    : value !== undefined && value !== null && value !== "" && value !== false && value !== 0;
