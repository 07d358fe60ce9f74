// Traces as log lines: what a span was, how long it took, what it knew. For `LOG_LEVEL=debug`.

import type { Span, TraceRecorder } from "../core/trace.ts";

export interface SpanLogger {
  debug(details: object, message: string): void;
}

export function logRecorder(logger: SpanLogger): TraceRecorder {
  return {
    startSpan(name, attributes) {
      const started = performance.now();
      const known: Record<string, unknown> = { ...attributes };
      const span: Span = {
        set(key, value) {
          known[key] = value;
          return span;
        },
        end: () => logger.debug({ ...known, duration_ms: Math.round(performance.now() - started) }, name),
      };
      return span;
    },
  };
}
