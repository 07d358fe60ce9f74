// Combines several trace recorders. If a plugin's recorder fails, the run continues without the record.

import type { Span, TraceRecorder } from "../../agent/core/tool.ts";
import type { Logger } from "../../lib/logger.ts";

/** Returns undefined if there are no recorders. Logs the errors that a recorder throws. */
export function allRecorders(recorders: readonly TraceRecorder[], logger: Logger): TraceRecorder | undefined {
  if (recorders.length === 0) return undefined;
  const each = <T, R>(parts: readonly T[], work: (part: T) => R): R[] =>
    parts.flatMap((part) => {
      try {
        return [work(part)];
      } catch (err) {
        logger.warn({ err }, "a trace recorder failed");
        return [];
      }
    });
  return {
    startSpan(name, attributes) {
      const spans = each(recorders, (recorder) => recorder.startSpan(name, attributes));
      const all: Span = {
        set(key, value) {
          each(spans, (span) => span.set(key, value));
          return all;
        },
        recordEvent(event, details) {
          each(spans, (span) => span.recordEvent(event, details));
          return all;
        },
        end: () => void each(spans, (span) => span.end()),
      };
      return all;
    },
    recordEvent: (name, attributes) =>
      void each(recorders, (recorder) => recorder.recordEvent(name, attributes)),
  };
}
