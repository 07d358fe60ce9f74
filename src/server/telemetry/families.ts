// The names, labels and buckets of all metrics that are counted as events happen. Metrics that are read on request are
// in readings.ts.

import { Counter, Gauge, Histogram, type Registry } from "prom-client";

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const LONG_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800];
/** The buckets that the conventions for model calls recommend: 0.01 s, doubled up to 81.92 s. */
const MODEL_SECONDS = Array.from({ length: 14 }, (_, n) => 0.01 * 2 ** n);

export type Families = ReturnType<typeof createFamilies>;

const MODEL_CALL = ["model", "outcome"] as const;

/** Creates and registers all metrics. */
export function createFamilies(registry: Registry) {
  const { counter, histogram, gauge } = instruments(registry);
  return {
    runsEnded: counter("runs_ended", "Runs that ended.", ["agent", "status", "stop_reason"]),
    runSeconds: histogram("run", "From acceptance to the end of a run.", LONG_SECONDS, ["agent"]),
    runWait: histogram("run_wait", "From acceptance until a process begins a run.", LONG_SECONDS),
    firstToken: histogram("run_first_token", "From acceptance to the first token.", LONG_SECONDS, ["agent"]),
    takenOver: counter("runs_taken_over", "Runs that this process took over from another process."),
    leasesLost: counter("leases_lost", "Runs that this process lost to another process."),
    modelCalls: counter("model_calls", "Model calls; `outcome` is `ok` or an error code.", MODEL_CALL),
    modelSeconds: histogram("model_call", "Duration of model calls.", MODEL_SECONDS, ["model"]),
    modelFirstToken: histogram(
      "model_first_token",
      "From the request to a model to its first token.",
      MODEL_SECONDS,
      ["model"],
    ),
    modelTokens: counter("model_tokens", "Tokens; `input` includes those of the cache.", ["model", "kind"]),
    modelCost: counter("model_cost_millionths", "Cost of model calls, in millionths of the currency.", [
      "model",
    ]),
    modelRetries: counter("model_retries", "Retries of model calls.", ["model", "code"]),
    modelFallbacks: counter("model_fallbacks", "Switches from a model to its fallback.", ["from", "to"]),
    toolCalls: counter("tool_calls", "Tool calls; `outcome` is `ok`, `error` or `interrupted`.", [
      "tool",
      "outcome",
    ]),
    toolSeconds: histogram("tool_call", "Duration of tool calls.", LONG_SECONDS, ["tool"]),
    endpointFailures: counter("tool_endpoint_failures", "Failed calls of callback tools and MCP servers.", [
      "tool",
      "code",
    ]),
    hookFailures: counter("hook_failures", "Errors of hooks in runs that continued.", ["hook"]),
    interrupts: counter("interrupts", "Questions to users, by kind.", ["kind"]),
    deferredResults: counter(
      "deferred_results",
      "Deferred results of callback tools; `late`: the thread had continued without the result.",
      ["outcome"],
    ),
    ...ofWebhooks(counter),
    auditEntries: counter("audit_entries", "Entries of the audit trail, by outcome.", ["outcome"]),
    storeSeconds: histogram("store", "Duration of store calls.", SECONDS, ["operation"]),
    storeErrors: counter("store_errors", "Store calls that failed.", ["operation"]),
    requests: counter("http_requests", "Answered requests.", ["route", "method", "status"]),
    requestSeconds: histogram("http_request", "Requests, without streams.", SECONDS, ["route"]),
    refused: counter("refused", "Requests refused at a limit.", ["limit"]),
    streamResumes: counter("stream_resumes", "Streams that clients continued with a cursor."),
    sandboxStart: histogram("sandbox_start", "Duration of sandbox starts.", LONG_SECONDS, ["type"]),
    sandboxFailures: counter("sandbox_failures", "Sandboxes that failed to start.", ["type"]),
    traceSpans: counter("trace_spans", "Spans for a collector, by outcome.", ["outcome"]),
    auditRecords: counter("audit_records", "Audit entries for a collector, by outcome.", ["outcome"]),
    configReloads: counter("config_reloads", "Reloads of the agents file.", ["outcome"]),
    configLoaded: gauge("config_loaded_timestamp_seconds", "Time at which the agents file was last loaded."),
    sandboxes: gauge("sandboxes", "Sandboxes of this process.", ["type", "state"]),
  };
}

const ofWebhooks = (counter: ReturnType<typeof instruments>["counter"]) => ({
  webhooks: counter("webhook_notifications", "Notifications of open questions, by outcome.", ["outcome"]),
  deliveries: counter("webhook_deliveries", "Deliveries to webhooks of users and tenants, by outcome.", [
    "outcome",
  ]),
});

function instruments(registry: Registry) {
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Counter({ name: `skein_${name}_total`, help, labelNames, registers });
  const histogram = <L extends string>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: readonly L[] = [],
  ) => new Histogram({ name: `skein_${name}_seconds`, help, buckets, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Gauge({ name: `skein_${name}`, help, labelNames, registers });
  return { counter, histogram, gauge };
}
