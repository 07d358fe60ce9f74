// What a dead attempt left open, read back from the run's own log.

import type { EventName, StreamEvent } from "../core/event.ts";
import { BRACKETS, type Opening, stillOpen } from "../core/grammar.ts";
import type { EventLog, Lease } from "../core/stores.ts";

export interface Leftovers {
  /** Tool calls that had begun: their effects may have happened. */
  readonly calls: ReadonlySet<string>;
  /** The events that close what is open. */
  readonly closing: readonly StreamEvent[];
}

const OF_INTEREST: ReadonlySet<EventName> = new Set([...BRACKETS, "run_resumed"]);

/**
 * Reads the log up to the `run_resumed` of this attempt, which its caller has just written.
 * Throws `events_expired` when the log no longer goes back to the beginning.
 */
export async function leftovers(log: EventLog, lease: Lease, attempt: number): Promise<Leftovers> {
  const openings = stillOpen(await earlierEvents(log, lease, attempt)).filter((event) => !event.path);
  const calls = openings.flatMap((event) => (event.event === "on_tool_start" ? [event.data.call_id] : []));
  return { calls: new Set(calls), closing: openings.map(closing) };
}

async function earlierEvents(log: EventLog, lease: Lease, attempt: number): Promise<StreamEvent[]> {
  const events: StreamEvent[] = [];
  for await (const batch of log.read(lease, 0, new AbortController().signal)) {
    for (const { event: name, json } of batch) {
      if (!OF_INTEREST.has(name)) continue;
      // The log holds what `append` was given, and nothing else.
      const event = JSON.parse(json) as StreamEvent;
      if (event.event === "run_resumed" && event.data.attempt === attempt) return events;
      events.push(event);
    }
  }
  return events;
}

function closing(opening: Opening): StreamEvent {
  if (opening.event === "on_chat_model_start")
    return { event: "message_discard", data: { message_id: opening.data.message_id } };
  const { call_id } = opening.data;
  return { event: "on_tool_end", name: opening.name, data: { call_id, interrupted: true, duration_ms: 0 } };
}
