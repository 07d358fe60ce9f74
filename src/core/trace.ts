// The port to whoever keeps traces. Without a recorder tracing does nothing.

export interface Span {
  set(key: string, value: unknown): Span;
  /** Records that something happened now, within the span. */
  recordEvent(name: string, attributes?: Readonly<Record<string, unknown>>): Span;
  /** Ends the span and records its duration. Called exactly once. */
  end(): void;
}

export interface TraceRecorder {
  /** A span of the run `attributes.run_id`, begun now. */
  startSpan(name: string, attributes: Readonly<Record<string, unknown>>): Span;
  /** Records that something happened now in the run `attributes.run_id`, outside of any span. */
  recordEvent(name: string, attributes: Readonly<Record<string, unknown>>): void;
}

/** The trace of one run, for its hooks and tools: what they record carries the run's ids. */
export interface RunTrace {
  startSpan(name: string, attributes?: Readonly<Record<string, unknown>>): Span;
  recordEvent(name: string, attributes?: Readonly<Record<string, unknown>>): void;
}

export function runTrace(recorder: TraceRecorder, ids: { run_id: string; thread_id: string }): RunTrace {
  return {
    startSpan: (name, attributes) => recorder.startSpan(name, { ...attributes, ...ids }),
    recordEvent: (name, attributes) => recorder.recordEvent(name, { ...attributes, ...ids }),
  };
}
