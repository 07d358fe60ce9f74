// The port to whoever keeps traces. Without a recorder tracing does nothing.

export interface Span {
  set(key: string, value: unknown): Span;
  /** Ends the span and records its duration. Called exactly once. */
  end(): void;
}

export interface TraceRecorder {
  /** A span of the run `attributes.run_id`, begun now. */
  startSpan(name: string, attributes: Readonly<Record<string, unknown>>): Span;
}
