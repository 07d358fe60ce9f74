// Sends the spans of runs to an OpenTelemetry collector, over OTLP/HTTP. The queue is limited: spans that do not fit or
// cannot be delivered are counted and dropped. A collector that does not respond causes no delay.

import {
  type Context,
  type HrTime,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import type { Resource } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace";
import type { Claim } from "../../agent/core/stores.ts";
import {
  parseTraceparent,
  spanIdOf,
  type TraceContext,
  type TracedRun,
  traceIdOf,
} from "../../agent/core/trace-context.ts";
import type { RunListener } from "../../engine/runs/services.ts";
import type { Logger } from "../../lib/logger.ts";
import { contentsLength, withoutContents } from "./contents.ts";
import { errorType, SCHEMA_URL } from "./conventions.ts";
import { telemetryResource } from "./resource.ts";
import { type EndedSpan, followSpans } from "./run-spans.ts";

export interface TraceOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly version: string;
  readonly logger: Pick<Logger, "info" | "warn">;
  /** True if spans contain messages and results. */
  readonly contents: boolean;
  /** Counts spans by their outcome. */
  count(outcome: SpanOutcome, spans: number): void;
}

/** `dropped`: the queue was full. `failed`: the collector did not accept the span. */
export type SpanOutcome = "sent" | "failed" | "dropped";

export interface Traces {
  contextOf(run: TracedRun): TraceContext;
  /** For `RunServices.listeners`. */
  follow(claim: Claim): RunListener;
  /** Sends the queued spans, for at most five seconds. */
  close(): Promise<void>;
}

/** The maximum number of spans that wait to be sent, or for a response. */
const MAX_QUEUE = 8192;
const BATCH_SIZE = 512;
/** The batch size with contents, because collectors accept requests of a few MB. */
const FULL_BATCH_SIZE = 64;
/** The maximum number of characters of contents in queued spans. Beyond it, further spans are queued without contents. */
const MAX_CONTENTS = 32 * 1024 * 1024;
/** The maximum time that a span waits for other spans, in ms. */
const DELAY_MS = 5_000;
const CLOSE_MS = 5_000;

/** The endpoint, its headers, the resource and the sampler come from OpenTelemetry's environment variables. */
export function createTraces({ env, version, logger, contents, count }: TraceOptions): Traces {
  const resource = telemetryResource(version);
  const scope = { name: "skein", version, schemaUrl: SCHEMA_URL };
  const sampler = samplerOf(env);
  const exporter = new OTLPTraceExporter();
  let unsettled = 0;
  let unsettledContents = 0;
  let isFailing = false;

  const settled = (batch: readonly ReadableSpan[], error: Error | undefined) => {
    const spans = batch.length;
    unsettled -= spans;
    for (const { attributes } of batch) unsettledContents -= contentsLength(attributes);
    count(error ? "failed" : "sent", spans);
    if (error && !isFailing) logger.warn({ err: error, spans }, "traces cannot be delivered");
    if (!error && isFailing) logger.info({}, "traces are delivered again");
    isFailing = error !== undefined;
  };
  const processor = new BatchSpanProcessor({
    maxQueueSize: MAX_QUEUE,
    maxExportBatchSize: contents ? FULL_BATCH_SIZE : BATCH_SIZE,
    scheduledDelayMillis: Number(env.OTEL_BSP_SCHEDULE_DELAY) || DELAY_MS,
    exporter: {
      export: (spans, done) =>
        exporter.export(spans, (result) => {
          settled(spans, result.code === 0 ? undefined : (result.error ?? new Error("The export failed.")));
          done(result);
        }),
      shutdown: () => exporter.shutdown(),
    },
  });

  const emit = (span: EndedSpan) => {
    if (!span.context.isSampled) return;
    if (unsettled >= MAX_QUEUE) {
      count("dropped", 1);
      return;
    }
    unsettled++;
    processor.onEnd(readable(fitting(span), resource, scope));
  };

  const fitting = (span: EndedSpan): EndedSpan => {
    const length = contentsLength(span.attributes);
    if (unsettledContents + length > MAX_CONTENTS)
      return { ...span, attributes: withoutContents(span.attributes) };
    unsettledContents += length;
    return span;
  };

  const contextOf = (run: TracedRun): TraceContext => {
    const traceId = traceIdOf(run);
    const parent = parseTraceparent(run.origin?.traceparent);
    const isSampled = isSampledBy(sampler, traceId, parent);
    return { traceId, spanId: spanIdOf(run.id), isSampled };
  };

  return {
    contextOf,
    follow(claim) {
      const context = contextOf({ id: claim.run.id, origin: claim.request.origin });
      return context.isSampled ? followSpans(claim, { context, contents, emit }) : {};
    },
    async close() {
      const timeout = new Promise<void>((resolve) => setTimeout(resolve, CLOSE_MS).unref());
      await Promise.race([processor.shutdown().catch(() => {}), timeout]);
    },
  };
}

/**
 * Returns the sampler that `OTEL_TRACES_SAMPLER` and its argument select. By default, it follows the parent, and
 * samples everything if there is no parent.
 */
function samplerOf({
  OTEL_TRACES_SAMPLER: name,
  OTEL_TRACES_SAMPLER_ARG: argument,
}: NodeJS.ProcessEnv): Sampler {
  const ratio = argument === undefined || argument === "" ? 1 : Number(argument);
  const byRatio = new TraceIdRatioBasedSampler(Number.isFinite(ratio) ? ratio : 1);
  switch (name) {
    case "always_on":
      return new AlwaysOnSampler();
    case "always_off":
      return new AlwaysOffSampler();
    case "traceidratio":
      return byRatio;
    case "parentbased_always_off":
      return new ParentBasedSampler({ root: new AlwaysOffSampler() });
    case "parentbased_traceidratio":
      return new ParentBasedSampler({ root: byRatio });
    default:
      return new ParentBasedSampler({ root: new AlwaysOnSampler() });
  }
}

function isSampledBy(sampler: Sampler, traceId: string, parent: TraceContext | undefined): boolean {
  const context: Context = parent
    ? trace.setSpanContext(ROOT_CONTEXT, { ...wired(parent), isRemote: true })
    : ROOT_CONTEXT;
  const { decision } = sampler.shouldSample(context, traceId, "invoke_agent", SpanKind.INTERNAL, {}, []);
  return decision === SamplingDecision.RECORD_AND_SAMPLED;
}

const wired = ({ traceId, spanId, isSampled }: TraceContext) => ({
  traceId,
  spanId,
  traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
});

const inNanoseconds = (ms: number): HrTime => [Math.floor(ms / 1000), Math.round((ms % 1000) * 1e6)];

function readable(
  span: EndedSpan,
  resource: Resource,
  instrumentationScope: ReadableSpan["instrumentationScope"],
): ReadableSpan {
  const { context, parent, linked, name, kind, begun, ended, failure, events } = span;
  return {
    name,
    kind,
    spanContext: () => wired(context),
    ...(parent ? { parentSpanContext: wired(parent) } : {}),
    startTime: inNanoseconds(begun),
    endTime: inNanoseconds(ended),
    duration: inNanoseconds(Math.max(0, ended - begun)),
    status:
      failure === undefined
        ? { code: SpanStatusCode.UNSET }
        : { code: SpanStatusCode.ERROR, message: failure },
    attributes: { ...span.attributes, ...(failure === undefined ? {} : errorType(failure)) },
    links: linked ? [{ context: wired(linked) }] : [],
    events: events.map(({ name, at, attributes }) => ({ name, time: inNanoseconds(at), attributes })),
    ended: true,
    resource,
    instrumentationScope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}
