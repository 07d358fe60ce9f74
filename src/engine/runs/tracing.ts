// What a run passes on of its trace: to callback tools, MCP servers and its subagents.

import type { Origin } from "../../agent/core/records.ts";
import { parseTraceparent, spanIdOf, type TracedRun, traceparentOf } from "../../agent/core/trace-context.ts";
import type { RunServices } from "./services.ts";

/** Of a call of the run. Without traces of this server: what the run was started with, if anything. */
export function traceparentOfCall(
  { traces }: Pick<RunServices, "traces">,
  run: TracedRun,
  callId: string,
): string | undefined {
  if (!traces) return run.origin?.traceparent;
  return traceparentOf({ ...traces.contextOf(run), spanId: spanIdOf(run.id, callId) });
}

/** For a run that works for a call of another run. */
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

/** For log lines: the trace that the run is in. */
export function traceIdIn({ traces }: Pick<RunServices, "traces">, run: TracedRun): string | undefined {
  return traces?.contextOf(run).traceId ?? parseTraceparent(run.origin?.traceparent)?.traceId;
}
