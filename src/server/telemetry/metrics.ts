// The metrics for Prometheus, and the functions that update them. No label names a tenant, a user, a thread or a run.

import {
  Counter,
  collectDefaultMetrics,
  type Metric,
  type OpenMetricsContentType,
  Registry,
} from "prom-client";
import type { Claim, Stores } from "../../agent/core/stores.ts";
import type { RunListener } from "../../engine/runs/services.ts";
import { createFamilies } from "./families.ts";
import { createLabels, type KnownNames } from "./labels.ts";
import { type Readings, registerReadings } from "./readings.ts";
import { followRun } from "./run-metrics.ts";
import { timed } from "./stores.ts";

let ofProcess: Registry | undefined;

/**
 * Returns the metrics of the process, which its servers share, because Node has one garbage collector and one event
 * loop. Measurement starts with the first call.
 */
function processMetrics(): Registry {
  if (ofProcess) return ofProcess;
  ofProcess = new Registry();
  collectDefaultMetrics({ register: ofProcess });
  // These gauges have the suffix of a counter.
  for (const kind of ["handles", "requests", "resources"])
    ofProcess.removeSingleMetric(`nodejs_active_${kind}_total`);
  return ofProcess;
}

/**
 * Returns the same metrics in the OpenMetrics format, where only a counter's samples have the suffix of its name. The
 * library's own OpenMetrics registry would rename the counters in both formats.
 */
function inOpenMetrics(all: Registry) {
  const open = new Registry<OpenMetricsContentType>();
  open.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  for (const { name } of all.getMetricsAsArray()) {
    const metric = all.getSingleMetric(name);
    if (!metric) continue;
    const counted =
      metric instanceof Counter ? { type: "counter", name: name.replace(/_total$/, "") } : { name };
    const get = async () => ({ ...(await metric.get()), name: counted.name });
    open.registerMetric({ ...counted, get } as unknown as Metric);
  }
  return open;
}

/** The server's modules report to it. Only `text` is asynchronous, and only `text` can throw. */
export type Metrics = ReturnType<typeof createMetrics>;

export function createMetrics(known: KnownNames, readings: Readings) {
  const registry = new Registry();
  const families = createFamilies(registry);
  families.configLoaded.setToCurrentTime();
  registerReadings(registry, readings);
  const labels = createLabels(known);
  let made: ReturnType<typeof pagesOf> | undefined;
  const pages = () => {
    made ??= pagesOf(registry, readings.worker);
    return made;
  };
  return {
    ...families,
    /** Starts to measure the process. Otherwise, measurement starts with the first reading. */
    begin: () => void pages(),
    /** For `RunServices.listeners`. */
    follow: (claim: Claim): RunListener => followRun(claim, families, labels),
    timed: <S extends Stores>(stores: S): S => timed(stores, families),
    /** In the text format of Prometheus. */
    text: { contentType: Registry.PROMETHEUS_CONTENT_TYPE, read: () => pages().all.metrics() },
    openMetrics: { contentType: Registry.OPENMETRICS_CONTENT_TYPE, read: () => pages().open.metrics() },
  };
}

/** Returns the metrics of a server and of its process, in both formats. */
function pagesOf(registry: Registry, worker: number | undefined) {
  const all = Registry.merge([processMetrics(), registry]);
  const open = inOpenMetrics(all);
  if (worker !== undefined) for (const each of [all, open]) each.setDefaultLabels({ worker: String(worker) });
  return { all, open };
}
