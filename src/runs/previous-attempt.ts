// Reads the earlier attempts of a run from its log, for the process that takes the run over or ends it.

import { loggedWords, type PartialMessage, trackPartial } from "../core/incomplete-message.ts";
import { addUsage, NO_USAGE, type Usage } from "../core/message.ts";
import type { EventLog, Lease } from "../core/stores.ts";
import type { EventName, StreamEvent } from "../protocol/event.ts";
import { SPAN_EVENTS, type SpanStart, stillOpen } from "../protocol/grammar.ts";

/** The earlier attempts of a run, as its log has them. */
export interface PreviousAttempt {
  /** The start events without an end event, in order. */
  readonly openings: readonly SpanStart[];
  /** Every tool call that was started, ended or not. Only a result in the thread tells what it did. */
  readonly begun: readonly string[];
  /** What its model calls and its ended subagents have used so far. */
  readonly usage: Usage;
  /** How many model calls the run itself has begun, if `isWhole`. */
  readonly modelCalls: number;
  /** False if the log's beginning was dropped: more calls may have started. */
  readonly isWhole: boolean;
  /** The message that its last model call was writing. */
  readonly partial: PartialMessage;
}

export const firstAttempt = (): PreviousAttempt => ({
  openings: [],
  begun: [],
  usage: NO_USAGE,
  modelCalls: 0,
  isWhole: true,
  partial: trackPartial(),
});

const RELEVANT: ReadonlySet<EventName> = new Set(SPAN_EVENTS);

/** Reads the log as it is now. Only the run's writer may call it, while it writes nothing. */
export async function previousAttempt(log: EventLog, lease: Lease): Promise<PreviousAttempt> {
  const { first, last } = await log.bounds(lease);
  const events: StreamEvent[] = [];
  const words = loggedWords();
  const read = last === 0 ? [] : log.read(lease, first - 1, new AbortController().signal);
  for await (const batch of read) {
    // Events were checked when they were appended.
    for (const entry of batch) {
      words.add(entry);
      if (RELEVANT.has(entry.event)) events.push(JSON.parse(entry.json) as StreamEvent);
    }
    if (batch.some(({ seq }) => seq === last)) break;
  }
  const own = events.filter((event) => !event.path);
  const begun = own.flatMap((event) => (event.event === "on_tool_start" ? [event.data.call_id] : []));
  const usage = own.map(usedIn).reduce(addUsage, NO_USAGE);
  const modelCalls = own.filter(({ event }) => event === "on_chat_model_start").length;
  return {
    openings: stillOpen(events),
    begun,
    usage,
    modelCalls,
    isWhole: first <= 1,
    partial: words.partial(),
  };
}

/** A subagent's usage counts at its end: one that has not ended is followed again from its start. */
function usedIn(event: StreamEvent): Usage {
  const counts = event.event === "on_chat_model_end" || event.event === "on_subagent_end";
  return (counts ? event.data.usage : undefined) ?? NO_USAGE;
}
