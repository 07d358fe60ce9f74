// Traces as log lines: what a span was, how long it took, what it knew. For `LOG_LEVEL=debug`.

import type { Span, TraceRecorder } from "../core/trace.ts";
import type { Logger } from "../lib/logger.ts";

/** Of one span; those that come after them are left out. */
const MAX_EVENTS = 100;

export function logRecorder(logger: Pick<Logger, "debug">): TraceRecorder {
  return {
    startSpan(name, attributes) {
      const started = performance.now();
      const known: Record<string, unknown> = { ...attributes };
      const events: object[] = [];
      const sinceStart = () => Math.round(performance.now() - started);
      const span: Span = {
        set(key, value) {
          known[key] = value;
          return span;
        },
        recordEvent(event, attributes) {
          if (events.length < MAX_EVENTS) events.push({ ...attributes, event, after_ms: sinceStart() });
          return span;
        },
        end: () =>
          logger.debug?.(
            { ...known, ...(events.length > 0 ? { events } : {}), duration_ms: sinceStart() },
            name,
          ),
      };
      return span;
    },
    recordEvent: (name, attributes) => logger.debug?.(attributes, name),
  };
}
