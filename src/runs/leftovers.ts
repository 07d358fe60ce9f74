// What a dead attempt left open, read back from the run's own log.

import type { StreamEvent } from "../core/event.ts";
import type { EventLog, Lease, LogEntry } from "../core/stores.ts";

export interface Leftovers {
  /** Tool calls that had begun: their effects may have happened. */
  readonly calls: ReadonlySet<string>;
  /** The events that close what is open. */
  readonly closing: readonly StreamEvent[];
}

/**
 * Reads the log up to the `run_resumed` of this attempt, which its caller has just written.
 * Throws `events_expired` when the log no longer goes back to the beginning.
 */
export async function leftovers(log: EventLog, lease: Lease, attempt: number): Promise<Leftovers> {
  const open = { messages: new Set<string>(), calls: new Map<string, string>() };
  for await (const batch of log.read(lease, 0, new AbortController().signal)) {
    for (const entry of batch) {
      const event = bracketOf(entry);
      if (event?.event === "run_resumed" && event.data.attempt === attempt) return close(open);
      if (event && !event.path) follow(event, open);
    }
  }
  return close(open);
}

interface Open {
  readonly messages: Set<string>;
  readonly calls: Map<string, string>;
}

const BRACKETS: ReadonlySet<string> = new Set([
  "run_resumed",
  "message_discard",
  "on_chat_model_start",
  "on_chat_model_end",
  "on_tool_start",
  "on_tool_end",
]);

function bracketOf(entry: LogEntry): StreamEvent | undefined {
  // The log holds what `append` was given, and nothing else.
  return BRACKETS.has(entry.event) ? (JSON.parse(entry.json) as StreamEvent) : undefined;
}

function follow(event: StreamEvent, { messages, calls }: Open): void {
  switch (event.event) {
    case "on_chat_model_start":
      messages.add(event.data.message_id);
      break;
    case "on_chat_model_end":
    case "message_discard":
      messages.delete(event.data.message_id);
      break;
    case "on_tool_start":
      calls.set(event.data.call_id, event.name);
      break;
    case "on_tool_end":
      calls.delete(event.data.call_id);
      break;
  }
}

function close({ messages, calls }: Open): Leftovers {
  const discards = [...messages].map(
    (message_id): StreamEvent => ({ event: "message_discard", data: { message_id } }),
  );
  const ends = [...calls].map(
    ([call_id, name]): StreamEvent => ({
      event: "on_tool_end",
      name,
      data: { call_id, interrupted: true, duration_ms: 0 },
    }),
  );
  return { calls: new Set(calls.keys()), closing: [...discards, ...ends] };
}
