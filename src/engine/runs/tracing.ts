// Passes a run's trace context on to callback tools, MCP servers and its subagents.

import type { Origin } from "../../agent/core/records.ts";
import { parseTraceparent, spanIdOf, type TracedRun, traceparentOf } from "../../agent/core/trace-context.ts";
import type { RunServices } from "./services.ts";

/**
 * Returns the trace context for a call of the run. If this server does not record traces, returns the context that
 * started the run, if any.
 */
export function traceparentOfCall(
  { traces }: Pick<RunServices, "traces">,
  run: TracedRun,
  callId: string,
): string | undefined {
  if (!traces) return run.origin?.traceparent;
  return traceparentOf({ ...traces.contextOf(run), spanId: spanIdOf(run.id, callId) });
}

/** Returns the origin of a subagent's run, which works for a tool call of the parent. */
export function originOfChild(
  services: Pick<RunServices, "traces">,
  parent: TracedRun,
  callId: string,
): Origin | undefined {
  const traceparent = traceparentOfCall(services, parent, callId);
  const { linked: _, ...origin } = parent.origin ?? { request_id: "" };
  if (traceparent === undefined) return parent.origin && origin;
  return { ...origin, traceparent };
}

/** Returns the run's trace id, for log lines. */
export function traceIdIn({ traces }: Pick<RunServices, "traces">, run: TracedRun): string | undefined {
  return traces?.contextOf(run).traceId ?? parseTraceparent(run.origin?.traceparent)?.traceId;
}
