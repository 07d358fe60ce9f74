// A run's context in traces: W3C `traceparent`, and ids derived from the run's id. Because the ids are derived, every
// process that ends a span writes the same span, and a take-over continues the trace. A call's span id is known before the
// call.

import { createHash } from "node:crypto";
import type { Origin } from "./records.ts";

export interface TraceContext {
  /** The trace's id: 32 hexadecimal digits. */
  readonly traceId: string;
  /** The span's id: 16 hexadecimal digits. */
  readonly spanId: string;
  readonly isSampled: boolean;
}

const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Parses version 00 only. Returns undefined for anything else. */
export function parseTraceparent(text: string | undefined): TraceContext | undefined {
  const [, traceId, spanId, flags = "00"] = TRACEPARENT.exec(text ?? "") ?? [];
  if (!traceId || !spanId) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export const traceparentOf = ({ traceId, spanId, isSampled }: TraceContext) =>
  `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;

export interface TracedRun {
  readonly id: string;
  readonly origin: Origin | undefined;
}

/**
 * Returns the trace id of the request that started the run if the request may set one. Otherwise, derives it
 * from the run's id.
 */
export const traceIdOf = ({ id, origin }: TracedRun): string =>
  parseTraceparent(origin?.traceparent)?.traceId ?? digits(`trace ${id}`, 32);

/**
 * Returns the id of a span. `part` identifies a span of the run by a call id or a message id, and is empty
 * for the run itself.
 */
export const spanIdOf = (runId: string, part = ""): string => digits(`span ${runId} ${part}`, 16);

const digits = (text: string, count: number) =>
  createHash("sha256").update(text).digest("hex").slice(0, count);
