// Connects metrics and traces to the modules that report to them, and to the values that Prometheus reads.

import { stat } from "node:fs/promises";
import { join } from "node:path";
import packageJson from "../../../package.json" with { type: "json" };
import type { AgentRegistry } from "../../agent/agents/registry.ts";
import type { BackendStatus } from "../../agent/core/backend.ts";
import { AppError } from "../../agent/core/errors.ts";
import type { Stores } from "../../agent/core/stores.ts";
import type { Engine } from "../../engine/runs/index.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { ServerConfig } from "../../server/config/server.ts";
import type { Dependencies } from "../../server/http/dependencies.ts";
import type { ResponseReport } from "../../server/http/response-report.ts";
import { type HttpServer, openStreams } from "../../server/http/server.ts";
import type { AuditRecords } from "../../server/telemetry/audit-records.ts";
import type { Metrics } from "../../server/telemetry/metrics.ts";
import { mergePages } from "../../server/telemetry/pages.ts";
import type { Traces } from "../../server/telemetry/traces.ts";
import type { MetricsFormat, Siblings } from "./siblings.ts";

/** Parts that exist only after the server has been created. Metrics read them later. */
export interface ObservedParts {
  readonly runs: Engine;
  readonly dependencies: Dependencies;
  readonly server: HttpServer;
}

/** Returns undefined if `metrics.enabled` is false, in which case the library is not loaded. */
export async function openMetrics(
  config: ServerConfig,
  { agents, stores, siblings }: { agents: AgentRegistry; stores: Stores; siblings: Siblings | undefined },
  observed: () => ObservedParts,
): Promise<Metrics | undefined> {
  if (!config.metrics.enabled) return undefined;
  const { createMetrics } = await import("../../server/telemetry/metrics.ts");
  const isAgent = (name: string) => {
    try {
      return agents.find(name).name === name;
    } catch {
      return false;
    }
  };
  const known = {
    isAgent,
    isModel: agents.hasModel,
    isOwnTool: agents.isReserved,
    isMcpServer: (name: string) => Object.hasOwn(agents.mcpServers() as object, name),
  };
  const { store, data_dir, limits, backends } = config;
  const metrics = createMetrics(known, {
    version: packageJson.version,
    sandboxes: backends.docker.sandboxes,
    runs: () => ({ active: observed().runs.executor.active, slots: limits.runs }),
    streams: () => ({ open: openStreams(observed().server), most: limits.streams }),
    waiting: () => stores.runs.waiting(),
    interrupted: stores.threads.interrupted,
    dependencies: () => observed().dependencies.states(),
    ...(store === "sqlite" ? { database: () => sizesIn(data_dir) } : {}),
    ...(siblings ? { worker: siblings.number } : {}),
  });
  if (!siblings) return metrics;
  siblings.shareMetrics((format) => metrics[format].read());
  const { text, openMetrics } = metrics;
  const readAll = async (format: MetricsFormat) => {
    const [own, others] = await Promise.all([metrics[format].read(), siblings.metricsOfOthers(format)]);
    return mergePages([own, ...others]);
  };
  return {
    ...metrics,
    text: { ...text, read: () => readAll("text") },
    openMetrics: { ...openMetrics, read: () => readAll("openMetrics") },
  };
}

async function sizesIn(dir: string) {
  const sizeOf = async (name: string) =>
    stat(join(dir, name)).then(
      ({ size }) => size,
      () => 0,
    );
  return { bytes: await sizeOf("skein.db"), walBytes: await sizeOf("skein.db-wal") };
}

/**
 * Returns undefined if no endpoint is set, in which case no OpenTelemetry package is loaded. The caller closes the
 * traces.
 */
export async function openTraces(
  env: NodeJS.ProcessEnv,
  { contents }: ServerConfig["traces"],
  { metrics, logger }: { metrics: Metrics | undefined; logger: Logger },
): Promise<Traces | undefined> {
  const endpoint = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (!endpoint || isDisabled(env)) return undefined;
  const { createTraces } = await import("../../server/telemetry/traces.ts");
  const count = (outcome: string, spans: number) => metrics?.traceSpans.inc({ outcome }, spans);
  return createTraces({ env, version: packageJson.version, logger, contents, count });
}

/** Returns undefined without `audit.otlp`. Throws if no endpoint is set. The caller closes the records after the trail. */
export async function openAuditRecords(
  env: NodeJS.ProcessEnv,
  { otlp }: ServerConfig["audit"],
  { metrics, logger }: { metrics: Metrics | undefined; logger: Logger },
): Promise<AuditRecords | undefined> {
  if (!otlp || isDisabled(env)) return undefined;
  if (!(env.OTEL_EXPORTER_OTLP_LOGS_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT))
    throw new AppError(
      "config_invalid",
      "`audit.otlp` is true, but no collector is set: set OTEL_EXPORTER_OTLP_ENDPOINT, such as http://collector:4318.",
    );
  const { createAuditRecords } = await import("../../server/telemetry/audit-records.ts");
  const count = (outcome: string, entries: number) => metrics?.auditRecords.inc({ outcome }, entries);
  return createAuditRecords({ version: packageJson.version, logger, count });
}

const isDisabled = (env: NodeJS.ProcessEnv) => env.OTEL_SDK_DISABLED?.toLowerCase() === "true";

/** Counts the server's responses. */
export const responsesIn = (metrics: Metrics): ResponseReport => ({
  answered({ route = "other", method, status, seconds }) {
    metrics.requests.inc({ route, method, status: String(status) });
    if (seconds !== undefined) metrics.requestSeconds.observe({ route }, seconds);
  },
  refused: (limit) => metrics.refused.inc({ limit }),
  resumed: () => metrics.streamResumes.inc(),
});

export type Reload = "ok" | "invalid";

export function countReload(metrics: Metrics, outcome: Reload): void {
  metrics.configReloads.inc({ outcome });
  if (outcome === "ok") metrics.configLoaded.setToCurrentTime();
}

/** Equals the maximum number of backends in the pool. */
const MAX_FOLLOWED = 1000;

/**
 * Counts this process's sandboxes by their status changes. Above the maximum, the oldest sandbox is no longer counted.
 */
export function followBackends(metrics: Metrics): (owner: Owner, status: BackendStatus) => void {
  const known = new Map<string, { readonly status: BackendStatus["status"]; readonly at: number }>();
  return ({ tenant, user }, { name, type, status }) => {
    const key = JSON.stringify([tenant, user, name]);
    const before = known.get(key);
    if (before?.status === status) return;
    const now = performance.now();
    const forget = (one: string, state: string) => {
      known.delete(one);
      metrics.sandboxes.dec({ type, state });
    };
    if (before) forget(key, before.status);
    if (status !== "stopped") {
      known.set(key, { status, at: now });
      metrics.sandboxes.inc({ type, state: status });
    }
    const [oldest] = known;
    if (oldest && known.size > MAX_FOLLOWED) forget(oldest[0], oldest[1].status);
    if (status === "error") metrics.sandboxFailures.inc({ type });
    if (status === "running" && before?.status === "starting")
      metrics.sandboxStart.observe({ type }, (now - before.at) / 1000);
  };
}
