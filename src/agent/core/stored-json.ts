// Reads the messages of a thread and the events of a log from JSON, which was validated when it was stored. Threads and logs
// can be long, so readers yield to the event loop between parts, or receive one page at a time.

import type { StreamEvent } from "../../protocol/event.ts";
import type { Message } from "./message.ts";
import type { LogEntry } from "./stores.ts";

export const storedMessage = (text: string): Message => JSON.parse(text) as Message;

/** How a run's own text deltas begin and end in the log. Deltas of a subagent end with their path. */
const DELTA = { begin: '{"event":"on_chat_model_stream","data":{"delta":"', end: '"}}' };

/**
 * Parses an event of the log. Nearly all events are deltas, and slicing these takes a quarter of the time of
 * `JSON.parse`.
 */
export function storedEvent({ json }: Pick<LogEntry, "json">): StreamEvent {
  const { begin, end } = DELTA;
  if (!json.startsWith(begin) || !json.endsWith(end)) return JSON.parse(json) as StreamEvent;
  const delta = json.slice(begin.length, -end.length);
  // A backslash begins an escape sequence. A quote means that another field follows.
  if (/["\\]/.test(delta)) return JSON.parse(json) as StreamEvent;
  return { event: "on_chat_model_stream", data: { delta } };
}
