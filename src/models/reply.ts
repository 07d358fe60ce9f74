// Shared by the readers of both providers: the interface, and the handling of tool calls.

import { MAX_ARGUMENT_DEPTH, readArguments } from "../core/call-arguments.ts";
import type { StreamEvent } from "../core/event.ts";
import type { ToolCall, Usage } from "../core/message.ts";
import type { ModelReply, StopReason } from "../core/model.ts";
import { isNestedDeeper } from "../lib/json.ts";
import { randomId } from "../lib/random-id.ts";

/** Reads one reply of a provider, event by event. */
export interface ReplyReader {
  /** Adds what one server-sent event tells to `out`. Throws `ProviderError` when the event is an error. */
  take(data: string, out: StreamEvent[]): void;
  /** Whether the reply is complete. A stream that ends earlier was cut. */
  readonly ended: boolean;
  /** What the provider has counted so far. */
  readonly usage: Usage;
  /** The reply; to be asked once, when it has ended. */
  finish(): ModelReply;
}

/** A tool call whose arguments are still coming. */
export interface OpenCall {
  id: string;
  name: string;
  json: string;
}

/** More tokens than any provider counts in one call. */
const MAX_COUNT = 1e9;
const MAX_NAME_LENGTH = 256;

/** A text of the provider's. Compatible servers send numbers for texts; anything else is no text. */
export function textIn(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" ? String(value) : "";
}

/** A token count of the provider's as a whole number; undefined when it is none. */
export function countIn(value: unknown): number | undefined {
  const isCount = typeof value === "number" && value >= 0 && value <= MAX_COUNT;
  return isCount ? Math.ceil(value) : undefined;
}

/** A piece of JSON. Compatible servers send the whole value instead of its text. */
export function jsonIn(value: unknown): string {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : textIn(value);
}

const nameIn = (value: unknown) => textIn(value).toWellFormed().slice(0, MAX_NAME_LENGTH);

/** The id of a tool call; empty when the provider gave none. */
export const idIn = nameIn;

/** A tool call as it begins. Without an id it is given one. */
export function openCall({ id, name, json }: { id: unknown; name: unknown; json: string }): OpenCall {
  return { id: idIn(id) || `call_${randomId()}`, name: nameIn(name), json };
}

/** Whether a value of the provider's may be kept with the message as it is. */
export function isKeepable(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !isNestedDeeper(value, MAX_ARGUMENT_DEPTH);
}

/** How the reply ended, and the calls that come of it. */
export function settle(
  stop: StopReason,
  open: readonly OpenCall[],
): Pick<ModelReply, "tool_calls" | "stop_reason"> {
  // What the provider took back in the middle is not carried out.
  if (stop === "refusal" || open.length === 0) return { tool_calls: [], stop_reason: stop };
  const last = open.length - 1;
  const tool_calls = open.map((call, index) => toToolCall(call, stop === "max_tokens" && index === last));
  // Some servers say that the turn is over and mean the calls.
  return { tool_calls, stop_reason: stop === "end_turn" ? "tool_use" : stop };
}

/** `cut`: the model's tokens ran out while it wrote this one. Then no arguments are not the same as none. */
function toToolCall({ id, name, json }: OpenCall, cut: boolean): ToolCall {
  const read = readArguments(json);
  if ("fault" in read || (cut && json.trim() === "")) return { id, name, args: {}, malformed: json };
  return { id, name, args: read.args };
}
