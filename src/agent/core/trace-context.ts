// The place of a run in traces: W3C `traceparent`, and ids derived from the run's own id. So every process that ends a span
// writes the same one, a take-over continues the trace, and a call's span is known before the call is made.

import { createHash } from "node:crypto";
import type { Origin } from "./records.ts";

export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  readonly isSampled: boolean;
}

const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Undefined for anything else than version 00. */
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

/** That of the request which started the run, if it may name one. */
export const traceIdOf = ({ id, origin }: TracedRun): string =>
  parseTraceparent(origin?.traceparent)?.traceId ?? digits(`trace ${id}`, 32);

/** `part` names a span of the run: a call's id, a message's, or nothing for the run itself. */
export const spanIdOf = (runId: string, part = ""): string => digits(`span ${runId} ${part}`, 16);

const digits = (text: string, count: number) =>
  createHash("sha256").update(text).digest("hex").slice(0, count);
