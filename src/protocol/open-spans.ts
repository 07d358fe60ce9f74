// Finds a run's open spans and the events that close them. Used by the run's own process and by a process that takes
// over the run.

import type { z } from "zod";
import type { ErrorShape, StreamEvent } from "./event.ts";
import { type AnySpan, readSpans } from "./span-reader.ts";

/** A span within a run. It closes before the run ends. */
export type InnerSpan = Exclude<AnySpan, { readonly kind: "run" }>;

export const innerSpans = (spans: readonly AnySpan[]): InnerSpan[] =>
  spans.filter((span) => span.kind !== "run");

/** Returns the spans within a run that have not ended. A parent comes before its children. */
export function stillOpen(events: Iterable<StreamEvent>): InnerSpan[] {
  const reader = readSpans({});
  for (const event of events) reader.see(event);
  return innerSpans(reader.open());
}

/** Returns the end event of a span that failed with `error`. */
export function failedEnd({ kind, start }: InnerSpan, error: z.infer<typeof ErrorShape>): StreamEvent {
  switch (kind) {
    case "model":
      return { ...start, event: "on_chat_model_end", data: { message_id: start.data.message_id, error } };
    case "tool": {
      const { call_id } = start.data;
      const data = { call_id, error: `Outcome unknown: ${error.message}`, duration_ms: 0 };
      return { ...start, event: "on_tool_end", data };
    }
    case "subagent": {
      const { id, call_id } = start.data;
      const data = { id, call_id, status: "failed" as const, summary: error.message };
      return { ...start, event: "on_subagent_end", data };
    }
  }
}

/**
 * Returns the end event of a span that will resume later: a message starts over, a call runs again, or a subagent is
 * followed again.
 */
export function interruptedEnd({ kind, start }: InnerSpan): StreamEvent {
  switch (kind) {
    case "model": {
      const { name: _, ...rest } = start;
      return { ...rest, event: "message_discard", data: { message_id: start.data.message_id } };
    }
    case "tool": {
      const data = { call_id: start.data.call_id, interrupted: true as const, duration_ms: 0 };
      return { ...start, event: "on_tool_end", data };
    }
    case "subagent": {
      const { id, call_id } = start.data;
      const data = { id, call_id, status: "interrupted" as const, summary: "" };
      return { ...start, event: "on_subagent_end", data };
    }
  }
}
