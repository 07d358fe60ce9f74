// The server's settings: the schema of config/server.yaml and its type. Every key has a default that works on a laptop.
// Durations are strings such as "10s" in the file and milliseconds in the program.

import { z } from "zod";
import { ModelPattern } from "../../agent/core/model.ts";
import { PluginList, pluginRefs } from "../../agent/core/plugin-ref.ts";
import { QuotaConfig } from "../../engine/quotas/config.ts";
import { Origin } from "../../lib/hosts.ts";
import { Duration, Lifetime } from "../../lib/units.ts";
import { WEBHOOK_SECRET } from "../../lib/webhook-signature.ts";
import { AuthConfig } from "../auth/config.ts";
import { Backends } from "./backends.ts";
import { Limits } from "./limits.ts";
import { count, Interval, MIB } from "./numbers.ts";
import { ToolHosts } from "./tool-hosts.ts";
import { Web } from "./web.ts";
import { DEFAULT_WIRES, WireName } from "./wire-names.ts";

export const Host = z.string().min(1);
export const Port = z.int().min(0).max(65_535);
/** More workers than a machine has cores are a mistake, such as a port number in the wrong place. */
export const Workers = z.int().min(1).max(256);
export const StoreKind = z.enum(["memory", "sqlite", "redis", "postgres"]);
export const LogLevel = z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]);
export const LogFormat = z.enum(["auto", "json", "text"]);

const Listen = z.strictObject({
  host: Host.default("127.0.0.1").describe(
    "Address to listen on. Without authentication, the server starts only on a loopback address.",
  ),
  port: Port.default(8000).describe("Port to listen on. 0 means any free port."),
});

export const RedisUrl = z
  .string()
  .regex(
    /^rediss?:\/\/[^/]+(\/\d{1,3})?$/,
    "must be redis://[user:password@]host[:port][/database], or rediss://… for TLS",
  );

const Redis = z.strictObject({
  url: RedisUrl.default("redis://127.0.0.1:6379").describe(
    "Address of Redis: `redis://user:password@host:port/database`, or `rediss://` for TLS.",
  ),
  lease: Interval.refine((ms) => ms >= 1000, "must be at least 1 s")
    .prefault("10s")
    .describe("Time after which another process takes over a run whose process has stopped responding."),
  wait_replicas: z
    .int()
    .min(0)
    .default(0)
    .describe(
      "Number of Redis replicas that must confirm the start, the messages and the end of a run. Not available with a cluster.",
    ),
});

export const PostgresUrl = z
  .string()
  .regex(
    /^postgres(ql)?:\/\/[^\s]*\/[^\s/]+$/,
    "must be postgres://[user:password@]host[:port]/database, with ?sslmode=verify-full for TLS",
  );

const Postgres = z.strictObject({
  url: PostgresUrl.default("postgres://127.0.0.1:5432/skein").describe(
    "Address of PostgreSQL. Add `?sslmode=verify-full` for TLS, `?host=/run/postgresql` for a socket.",
  ),
  lease: Interval.refine((ms) => ms >= 1000, "must be at least 1 s")
    .prefault("10s")
    .describe("Time after which another process takes over a run whose process has stopped responding."),
  pool: count
    .default(10)
    .describe("Maximum number of connections per process, in addition to one for notifications."),
});

const Streams = z.strictObject({
  heartbeat: Interval.prefault("10s").describe(
    "Maximum silence of a stream before the server sends a heartbeat.",
  ),
  stall: Interval.prefault("30s").describe(
    "Time after which the server disconnects a client that is not reading.",
  ),
});

const Retention = z.strictObject({
  threads: Lifetime.optional().describe(
    "Idle time after which a thread is deleted. Default: `1h` in memory, `30d` in Redis, `forever` on SQLite and PostgreSQL.",
  ),
  interrupted_threads: Lifetime.prefault("24h").describe(
    "Idle time after which an interrupted thread is deleted. Never shorter than `threads`.",
  ),
  temporary_threads: Interval.prefault("5m").describe(
    "How long the server keeps the thread of a run with `keep_thread: false` after the run ends, so that clients can still read it.",
  ),
  events: Lifetime.prefault("24h").describe("How long a run's events are kept after the run ends."),
  sweep: Interval.prefault("5m").describe("Interval between deletions of expired data."),
  memory_bytes: count
    .default(256 * MIB)
    .describe(
      "Maximum size in bytes of all threads with `STORE=memory`. Above this size, the server deletes the least recently used threads.",
    ),
});

const Audit = z.strictObject({
  reads: z.boolean().default(false).describe("Also records when users read their own data."),
  runs: z.boolean().default(false).describe("Also records the runs that users start."),
  keep: Lifetime.prefault("90d").describe("How long entries are kept."),
  entries: z
    .int()
    .min(1_000)
    .optional()
    .describe(
      "Maximum number of entries per tenant. The oldest are deleted first. Default: 100000, or 10000 in memory.",
    ),
  log: z.boolean().default(false).describe("Also writes each entry to the log."),
  otlp: z
    .boolean()
    .default(false)
    .describe("Also sends each entry to the collector of `OTEL_EXPORTER_OTLP_ENDPOINT` as a log record."),
});

const EventLoop = z.strictObject({
  warn_after: Duration.prefault("50ms").describe(
    "The server logs a warning when one piece of work blocks the process for longer than this. `0s` turns the warning off.",
  ),
});

// Shorter than the ten seconds of `docker stop`, so runs can end or be handed over in time.
const Shutdown = z.strictObject({
  grace: Duration.prefault("8s").describe("Maximum time for runs to end before the server hands them over."),
});

export const PublicUrl = z
  .url({ protocol: /^https?$/, error: "must be a URL that begins with http:// or https://" })
  .transform((url) => url.replace(/\/+$/, ""));

const HttpTools = z.strictObject({
  allow: ToolHosts.default("").describe(
    "Private addresses that callback tools can use: `host` or `host:port`, separated by commas.",
  ),
  bytes: count.default(MIB).describe("Maximum size in bytes of all of a tenant's callback tools."),
  trust_annotations: z
    .boolean()
    .default(false)
    .describe("Trusts annotations of callback tools that exempt calls from permissions."),
});

const Webhook = z
  .strictObject({
    url: z
      .url({ protocol: /^https?$/, error: "must be a URL that begins with http:// or https://" })
      .optional()
      .describe("Address that receives a POST for each run that ends `interrupted`."),
    secret: z
      .string()
      .regex(WEBHOOK_SECRET, "must be whsec_ followed by the base64 of 24 to 64 random bytes")
      .optional()
      .describe("Secret for the signatures: `whsec_` followed by 24 to 64 random bytes in base64."),
  })
  .refine(({ url, secret }) => (url === undefined) === (secret === undefined), "must have url and secret");

/** Long enough that it cannot be guessed. */
export const MetricsToken = z.string().min(16, "must have at least 16 characters");

const Metrics = z.strictObject({
  enabled: z.boolean().default(true).describe("Serves `GET /metrics`."),
  token: MetricsToken.optional().describe(
    "Token of at least 16 characters that gives access to `/metrics` and `/ready?verbose` without other credentials.",
  ),
});

/** 32 bytes in base64. */
export const VaultKey = z
  .string()
  .regex(
    /^[A-Za-z0-9+/]{43}=$/,
    "must be the base64 of 32 random bytes, as `openssl rand -base64 32` prints",
  );

const Vault = z.strictObject({
  key: VaultKey.optional().describe(
    "Key that encrypts users' credentials: 32 random bytes in base64. Without it, the server stores no credentials.",
  ),
  previous_keys: z
    .array(VaultKey)
    .max(4)
    .default([])
    .describe("Previous keys, with which the server can still decrypt older credentials."),
  connections: count.default(50).describe("Maximum number of connections per user, and per tenant."),
});

const Interrupts = z.strictObject({ webhook: Webhook.prefault({}) });

export const ServerConfig = z.strictObject({
  listen: Listen.prefault({}),
  workers: Workers.default(1).describe(
    "Number of processes on this machine that share the port, with `redis` or `postgres`.",
  ),
  data_dir: z
    .string()
    .min(1)
    .default("./data")
    .describe("Folder for the database, the keys and the workspaces."),
  agents_file: z.string().min(1).default("./agents.yaml").describe("File with the agents."),
  store: StoreKind.default("sqlite").describe("Store for threads, runs and events."),
  redis: Redis.prefault({}),
  postgres: Postgres.prefault({}),
  log_level: LogLevel.default("info").describe("Lowest level that the server logs."),
  log_format: LogFormat.default("auto").describe(
    "Format of the log. `auto` writes text to a terminal and JSON elsewhere.",
  ),
  auth: AuthConfig.prefault({}),
  public_url: PublicUrl.optional().describe(
    "Public address of this server. Callback tools deliver late results there.",
  ),
  http_tools: HttpTools.prefault({}),
  vault: Vault.prefault({}),
  web: Web.prefault({}),
  cors: z
    .strictObject({
      origins: z
        .array(Origin)
        .max(100)
        .default([])
        .describe("Origins whose pages can use the server, such as `https://app.example.com`."),
    })
    .prefault({}),
  page: z
    .boolean()
    .default(true)
    .describe("Serves the page at `/`. When off, `/` leads to the API reference."),
  traces: z
    .strictObject({
      requests: z
        .boolean()
        .default(false)
        .describe("Keeps each model request, with its prompts and tools, for the run's owner."),
      contents: z
        .boolean()
        .default(false)
        .describe("Sends prompts, answers, arguments and results to the OpenTelemetry collector."),
    })
    .prefault({}),
  metrics: Metrics.prefault({}),
  wires: z
    .array(WireName)
    .default([...DEFAULT_WIRES])
    .describe(
      "Protocols of existing front ends that the server enables. `mcp` and `a2a` are off by default.",
    ),
  backends: Backends.prefault({}),
  limits: Limits.prefault({}),
  models: z
    .strictObject({
      allow: z
        .array(ModelPattern)
        .max(1000)
        .optional()
        .describe(
          "Patterns of models that runs and overrides can name, in addition to the models in agents.yaml. Default: all without authentication, otherwise none.",
        ),
    })
    .prefault({}),
  system_messages: z
    .enum(["accept", "refuse"])
    .default("accept")
    .describe("Policy for messages from users with the role `system`."),
  quotas: QuotaConfig.prefault({}),
  interrupts: Interrupts.prefault({}),
  streams: Streams.prefault({}),
  retention: Retention.prefault({}),
  audit: Audit.prefault({}),
  event_loop: EventLoop.prefault({}),
  shutdown: Shutdown.prefault({}),
  plugins: PluginList.default([]).transform((modules) => pluginRefs(modules, "server.yaml")),
});
export type ServerConfig = z.output<typeof ServerConfig>;
