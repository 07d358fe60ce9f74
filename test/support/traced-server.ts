// A server that sends its traces to a collector.

import { onTestFinished, vi } from "vitest";
import { type ServerOptions, startServer } from "./server.ts";

/** A server whose traces are sent to `endpoint`. The library reads the environment of the process. */
export async function traced(
  endpoint: string,
  options: ServerOptions = {},
  more: Record<string, string> = {},
) {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...more };
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  return startServer({ ...options, env: { ...options.env, ...env } });
}
