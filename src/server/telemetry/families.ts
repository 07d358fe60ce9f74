// The names, labels and buckets of all metrics that are counted where something happens. Those that are read when they are
// asked for are in readings.ts.

import { Counter, Gauge, Histogram, type Registry } from "prom-client";

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const LONG_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800];
/** Those of the conventions for model calls: 0.01 s, doubled up to 81.92 s. */
const MODEL_SECONDS = Array.from({ length: 14 }, (_, n) => 0.01 * 2 ** n);

export type Families = ReturnType<typeof createFamilies>;

/** Registers each of them. */
export function createFamilies(registry: Registry) {
  const { counter, histogram, gauge } = instruments(registry);
  const families = {
    runsEnded: counter("runs_ended", "Runs that ended.", ["agent", "status", "stop_reason"]),
    runSeconds: histogram("run", "From acceptance to the end of a run.", LONG_SECONDS, ["agent"]),
    runWait: histogram("run_wait", "From acceptance until a process begins a run.", LONG_SECONDS),
    firstToken: histogram("run_first_token", "From acceptance to the first token.", LONG_SECONDS, ["agent"]),
    takenOver: counter("runs_taken_over", "Runs that this process took over from another one."),
    leasesLost: counter("leases_lost", "Runs that this process lost to another one."),
    modelCalls: counter("model_calls", "Calls of models; `outcome` is `ok` or an error's code.", [
      "model",
      "outcome",
    ]),
    modelSeconds: histogram("model_call", "Calls of models, from request to end.", MODEL_SECONDS, ["model"]),
    modelFirstToken: histogram(
      "model_first_token",
      "From the request of a model to its first token.",
      MODEL_SECONDS,
      ["model"],
    ),
    modelTokens: counter("model_tokens", "Tokens; `input` includes those of the cache.", ["model", "kind"]),
    modelCost: counter("model_cost_millionths", "What models cost, in millionths of the currency.", [
      "model",
    ]),
    modelRetries: counter("model_retries", "Calls of models that were repeated.", ["model", "code"]),
    modelFallbacks: counter("model_fallbacks", "Models given up for another one.", ["from", "to"]),
    toolCalls: counter("tool_calls", "Calls of tools; `outcome` is `ok`, `error` or `interrupted`.", [
      "tool",
      "outcome",
    ]),
    toolSeconds: histogram("tool_call", "Calls of tools.", LONG_SECONDS, ["tool"]),
    endpointFailures: counter(
      "tool_endpoint_failures",
      "Calls that a callback tool or an MCP server failed.",
      ["tool", "code"],
    ),
    hookFailures: counter("hook_failures", "Hooks that threw, in runs that continued.", ["hook"]),
    interrupts: counter("interrupts", "Questions to people, by kind.", ["kind"]),
    deferredResults: counter(
      "deferred_results",
      "Results that came later than the answer of their tool; `late`: the thread had continued without.",
      ["outcome"],
    ),
    webhooks: counter("webhook_notifications", "Notifications of open questions, by outcome.", ["outcome"]),
    storeSeconds: histogram("store", "Calls of the store.", SECONDS, ["operation"]),
    storeErrors: counter("store_errors", "Calls of the store that could not be carried out.", ["operation"]),
    requests: counter("http_requests", "Answered requests.", ["route", "method", "status"]),
    requestSeconds: histogram("http_request", "Requests, without streams.", SECONDS, ["route"]),
    refused: counter("refused", "Requests that were refused at a limit.", ["limit"]),
    streamResumes: counter("stream_resumes", "Streams that continued after a cursor."),
    sandboxStart: histogram("sandbox_start", "Starts of sandboxes.", LONG_SECONDS, ["type"]),
    sandboxFailures: counter("sandbox_failures", "Sandboxes that could not be started.", ["type"]),
    traceSpans: counter("trace_spans", "Spans for a collector, by what became of them.", ["outcome"]),
    configReloads: counter("config_reloads", "Reloads of the agents file.", ["outcome"]),
    configLoaded: gauge("config_loaded_timestamp_seconds", "When the agents file was read last."),
    sandboxes: gauge("sandboxes", "Sandboxes of this process.", ["type", "state"]),
  };
  families.configLoaded.setToCurrentTime();
  return families;
}

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
