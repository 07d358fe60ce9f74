// The spans of a run, out of the events that it writes. Without `contents` nothing of a conversation is in them.

import { type Attributes, SpanKind } from "@opentelemetry/api";
import type { Claim } from "../core/stores.ts";
import { parseTraceparent, spanIdOf, type TraceContext } from "../core/trace-context.ts";
import type { EventData, StreamEvent } from "../protocol/event.ts";
import type { RunListener } from "../runs/services.ts";
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
  /** Why it failed; a code, no text. */
  readonly failure: string | undefined;
}

export interface SpanEvent {
  readonly name: string;
  readonly at: number;
  readonly attributes: Attributes;
}

/** A model call with its retries, which is one span. */
interface LogicalCall {
  readonly id: string;
  readonly model: string;
  readonly begun: number;
  readonly retries: SpanEvent[];
  /** Its last attempt has ended. */
  end?: { readonly at: number; readonly data: ModelEnd; readonly contents: Attributes | undefined };
}
type ModelEnd = EventData<"on_chat_model_end">;

interface Following {
  readonly context: TraceContext;
  /** Whether spans have what was said. */
  readonly contents: boolean;
  emit(span: EndedSpan): void;
}

export function followSpans(
  { run, lease, request }: Claim,
  { context, contents, emit }: Following,
): RunListener {
  const { thread_id: thread } = run;
  const begun = Date.now();
  const said = contents ? followContents(request.input) : undefined;
  const tools = new Map<string, { readonly begun: number; readonly contents: Attributes | undefined }>();
  let call: LogicalCall | undefined;

  const inRun = (part: string) => ({
    context: { ...context, spanId: spanIdOf(run.id, part) },
    parent: context,
  });

  /** The last attempt of a model call is known to be the last when something else than a retry follows. */
  function endCall(): void {
    const { id, model, begun, retries, end } = call ?? {};
    if (id === undefined || model === undefined || begun === undefined || !end) return;
    call = undefined;
    const { stop_reason: stopReason, first_token_ms: firstTokenMs, usage, error } = end.data;
    emit({
      ...inRun(id),
      name: modelCallName(model),
      kind: SpanKind.CLIENT,
      begun,
      ended: end.at,
      attributes: {
        ...modelCallAttributes({ model, thread, stopReason, firstTokenMs, usage }),
        ...end.contents,
      },
      events: retries ?? [],
      failure: error?.code,
    });
  }

  function see(event: StreamEvent): undefined {
    if (event.event === "warning" && event.data.code === "model_retry") {
      const code = call?.end?.data.error?.code;
      call?.retries.push({ name: EVENTS.retry, at: Date.now(), attributes: errorType(code) });
      if (call) delete call.end;
      return;
    }
    // The next attempt of the same call.
    if (event.event === "on_chat_model_start" && call && !call.end) return;
    if (event.event !== "on_chat_model_end") endCall();
    switch (event.event) {
      case "on_chat_model_start": {
        const { message_id: id, model } = event.data;
        call = { id, model, begun: Date.now(), retries: [] };
        return;
      }
      case "on_chat_model_end":
        if (call) call.end = { at: Date.now(), data: event.data, contents: said?.ofModelCall() };
        return;
      case "on_message":
        said?.hear(event.data.message);
        return;
      case "on_tool_start": {
        const { call_id: callId, args } = event.data;
        tools.set(callId, { begun: Date.now(), contents: said && argumentAttributes(args) });
        return;
      }
      case "on_tool_end": {
        const { call_id: callId, error, duration_ms, output = "" } = event.data;
        const ended = Date.now();
        const { begun = ended - duration_ms, contents } = tools.get(callId) ?? {};
        tools.delete(callId);
        emit({
          ...inRun(callId),
          name: toolCallName(event.name),
          kind: isOfMcp(event.name) ? SpanKind.CLIENT : SpanKind.INTERNAL,
          begun,
          ended,
          attributes: {
            ...toolCallAttributes({ tool: event.name, callId, thread }),
            ...contents,
            ...(said && resultAttributes(output, error)),
          },
          events: [],
          failure: error === undefined ? undefined : "tool_error",
        });
        return;
      }
      case "done": {
        const { status, stop_reason: stopReason, usage } = event.data;
        ended({ status, stopReason, usage }, status === "error" ? stopReason : undefined);
        return;
      }
      case "error": {
        const { code, usage } = event.data;
        ended({ status: "error", stopReason: code, usage }, code);
      }
    }
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
