// Creates a run's spans from its events. Without `contents`, the spans contain nothing from the conversation.

import { type Attributes, SpanKind } from "@opentelemetry/api";
import type { Claim } from "../../agent/core/stores.ts";
import { parseTraceparent, spanIdOf, type TraceContext } from "../../agent/core/trace-context.ts";
import type { RunListener } from "../../engine/runs/services.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import { readSpans } from "../../protocol/span-reader.ts";
import { argumentAttributes, followContents, resultAttributes } from "./contents.ts";
import {
  agentAttributes,
  agentName,
  EVENTS,
  errorType,
  isOfMcp,
  modelCallAttributes,
  modelCallName,
  toolCallAttributes,
  toolCallName,
} from "./conventions.ts";

/** A span that has ended. Times are in ms since 1970. */
export interface EndedSpan {
  readonly context: TraceContext;
  readonly parent: TraceContext | undefined;
  readonly linked?: TraceContext | undefined;
  readonly name: string;
  readonly kind: SpanKind;
  readonly begun: number;
  readonly ended: number;
  readonly attributes: Attributes;
  readonly events: readonly SpanEvent[];
  /** The reason for the failure, as a code without text. */
  readonly failure: string | undefined;
}

export interface SpanEvent {
  readonly name: string;
  readonly at: number;
  readonly attributes: Attributes;
}

/** The state of an open span. A model call and its retries share one span. */
interface OpenSpan {
  readonly id: string;
  readonly at: number;
  readonly retries: SpanEvent[];
  contents?: Attributes | undefined;
  /** The end of the last attempt. */
  ended?: number;
}

interface RunSpanOptions {
  readonly context: TraceContext;
  /** True if spans contain messages and results. */
  readonly contents: boolean;
  emit(span: EndedSpan): void;
}

export function followSpans(
  { run, lease, request }: Claim,
  { context, contents, emit }: RunSpanOptions,
): RunListener {
  const { thread_id: thread } = run;
  const begun = Date.now();
  const said = contents ? followContents(request.input) : undefined;
  const inRun = (part: string) => ({
    context: { ...context, spanId: spanIdOf(run.id, part) },
    parent: context,
  });

  const begin = (id: string, contents?: Attributes): OpenSpan => ({
    id,
    at: Date.now(),
    retries: [],
    contents,
  });

  const spans = readSpans<OpenSpan>({
    model: {
      opened: ({ id, repeats }) => repeats?.own ?? begin(id),
      closed(_, span) {
        if (span?.own) Object.assign(span.own, { ended: Date.now(), contents: said?.ofModelCall() });
      },
      retried({ own }, end) {
        const attributes = errorType(end?.data.error?.code);
        own?.retries.push({ name: EVENTS.retry, at: Date.now(), attributes });
      },
      settled({ start, own }, { data }) {
        if (!own) return;
        const { model } = start.data;
        const { stop_reason: stopReason, first_token_ms: firstTokenMs, usage, error } = data;
        emit({
          ...inRun(own.id),
          name: modelCallName(model),
          kind: SpanKind.CLIENT,
          begun: own.at,
          ended: own.ended ?? Date.now(),
          attributes: {
            ...modelCallAttributes({ model, thread, stopReason, firstTokenMs, usage }),
            ...own.contents,
          },
          events: own.retries,
          failure: error?.code,
        });
      },
    },
    tool: {
      opened: ({ id, start }) => begin(id, said && argumentAttributes(start.data.args)),
      closed({ name: tool, data }, span) {
        const { call_id: callId, error, duration_ms, output = "" } = data;
        const ended = Date.now();
        emit({
          ...inRun(callId),
          name: toolCallName(tool),
          kind: isOfMcp(tool) ? SpanKind.CLIENT : SpanKind.INTERNAL,
          begun: span?.own?.at ?? ended - duration_ms,
          ended,
          attributes: {
            ...toolCallAttributes({ tool, callId, thread }),
            ...span?.own?.contents,
            ...(said && resultAttributes(output, error)),
          },
          events: [],
          failure: error === undefined ? undefined : "tool_error",
        });
      },
    },
    run: {
      closed({ event, data }) {
        if (event === "error")
          return ended({ status: event, stopReason: data.code, usage: data.usage }, data.code);
        const { status, stop_reason: stopReason, usage } = data;
        ended({ status, stopReason, usage }, status === "error" ? stopReason : undefined);
      },
    },
  });

  function see(event: StreamEvent): undefined {
    spans.see(event);
    if (event.event === "on_message") said?.hear(event.data.message);
  }

  function ended(
    outcome: Pick<Parameters<typeof agentAttributes>[0], "status" | "stopReason" | "usage">,
    failure: string | undefined,
  ): void {
    const { agent, id, attempt } = run;
    const { tenant } = lease.owner;
    emit({
      context,
      parent: parseTraceparent(request.origin?.traceparent),
      linked: parseTraceparent(request.origin?.linked),
      name: agentName(agent),
      kind: SpanKind.INTERNAL,
      begun: Date.parse(run.created_at),
      ended: Date.now(),
      attributes: {
        ...agentAttributes({ ...outcome, agent, thread, run: id, attempt, tenant }),
        ...said?.ofRun(),
      },
      events: [{ name: EVENTS.started, at: begun, attributes: {} }],
      failure,
    });
  }

  return { onProgress: see, afterWrite: see, ...said?.listener };
}
