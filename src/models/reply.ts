// What both providers' readers share: how a stream is taken in, and what becomes of its tool calls.

import type { StreamEvent } from "../core/event.ts";
import type { ToolCall } from "../core/message.ts";
import type { ModelReply, StopReason } from "../core/model.ts";

/** Reads one reply, event by event. Knows a provider's format and nothing of how it gets here. */
export interface ReplyReader {
  /** Adds what one server-sent event tells to `out`. Throws `ProviderError` when the event is an error. */
  take(data: string, out: StreamEvent[]): void;
  /** The provider has said its last word. A stream that stops before it was cut. */
  readonly ended: boolean;
  /** The reply; to be asked once, when it has ended. */
  finish(): ModelReply;
}

/** A tool call whose arguments are still coming. */
export interface OpenCall {
  id: string;
  name: string;
  json: string;
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
  if (json.trim() === "" && !cut) return { id, name, args: {} };
  const args = parseObject(json);
  return args ? { id, name, args } : { id, name, args: {}, malformed: json };
}

function parseObject(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json);
    // An object that JSON.parse made has string keys only.
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch {
    // not JSON
  }
  return undefined;
}
