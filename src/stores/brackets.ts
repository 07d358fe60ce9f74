// Ends the spans that a dead process left open, so that every start has its end.

import type { EventName, StreamEvent } from "../core/event.ts";
import { failedEnd, SPAN_EVENTS, stillOpen } from "../core/grammar.ts";
import type { RunRecord } from "../core/records.ts";
import type { LogEntry } from "../core/stores.ts";

type RunError = NonNullable<RunRecord["error"]>;

const IS_BRACKET: ReadonlySet<EventName> = new Set(SPAN_EVENTS);

/** The ends of what is open after `entries`, the innermost first. `error` says why. */
export function endsOf(entries: Iterable<LogEntry>, error: RunError, ts: string): StreamEvent[] {
  return stillOpen(brackets(entries))
    .reverse()
    .map((opening) => ({ ...failedEnd(opening, error), ts }));
}

function* brackets(entries: Iterable<LogEntry>): Generator<StreamEvent> {
  for (const { event, json } of entries) {
    // Every entry was written from a StreamEvent.
    if (IS_BRACKET.has(event)) yield JSON.parse(json) as StreamEvent;
  }
}
