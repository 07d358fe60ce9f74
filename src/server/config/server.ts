// The server's settings: the schema of config/server.yaml and its type. Every key has a default that works on a laptop.
// The file has durations such as "10s"; the program has them in milliseconds.

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
/** More workers than a machine has cores are a mistake, such as a port in the wrong place. */
export const Workers = z.int().min(1).max(256);
export const StoreKind = z.enum(["memory", "sqlite", "redis", "postgres"]);
export const LogLevel = z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]);
export const LogFormat = z.enum(["auto", "json", "text"]);

const Listen = z.strictObject({
  host: Host.default("127.0.0.1").describe(
    "Address to listen on. Without authentication only an address of this machine starts.",
  ),
  port: Port.default(8000).describe("Port to listen on. 0 takes any free port."),
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
    .describe("Time without a sign of life after which another process takes over a run."),
  wait_replicas: z
    .int()
    .min(0)
    .default(0)
    .describe(
      "Number of Redis replicas that must confirm the start, the messages and the end of a run. Not for a cluster.",
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
    .describe("Time without a sign of life after which another process takes over a run."),
  pool: count.default(10).describe("Maximum connections of one process, besides one for notifications."),
});

const Streams = z.strictObject({
  heartbeat: Interval.prefault("10s").describe(
    "Maximum silence of a stream before the server sends a heartbeat.",
  ),
  stall: Interval.prefault("30s").describe(
    "Time after which the server disconnects a client that reads nothing.",
  ),
});

const Retention = z.strictObject({
  threads: Lifetime.optional().describe(
    "Time without use after which a thread is deleted. Default: `1h` in memory, `30d` in Redis, `forever` on SQLite and PostgreSQL.",
  ),
  interrupted_threads: Lifetime.prefault("24h").describe(
    "Time without use after which an interrupted thread is deleted; never shorter than `threads`.",
  ),
  temporary_threads: Interval.prefault("5m").describe(
    "Time after the end of a run with `keep_thread: false` to keep its thread, for clients that have not read it yet.",
  ),
  events: Lifetime.prefault("24h").describe("Time after the end of a run to keep its events."),
  sweep: Interval.prefault("5m").describe("Interval between two deletions of expired data."),
  memory_bytes: count
    .default(256 * MIB)
    .describe(
      "Maximum bytes of all threads with `STORE=memory`. Above it the server deletes the threads unused for longest.",
    ),
});

const Audit = z.strictObject({
  reads: z.boolean().default(false).describe("Records what users read of their own data too."),
  runs: z.boolean().default(false).describe("Records the runs that users start too."),
  keep: Lifetime.prefault("90d").describe("Time to keep entries of the trail."),
  entries: z
    .int()
    .min(1_000)
    .optional()
    .describe(
      "Maximum entries of a tenant; the oldest are deleted first. Default: 100000, or 10000 in memory.",
    ),
  log: z.boolean().default(false).describe("Writes each entry to the log too."),
});

const EventLoop = z.strictObject({
  warn_after: Duration.prefault("50ms").describe(
    "Duration of one piece of blocking work above which the server logs a warning. `0s` logs none.",
  ),
});

// Shorter than the ten seconds of `docker stop`, so that runs end or are handed over in time.
const Shutdown = z.strictObject({
  grace: Duration.prefault("8s").describe("Maximum time for runs to end before the server hands them over."),
});

export const PublicUrl = z
  .url({ protocol: /^https?$/, error: "must be a URL that begins with http:// or https://" })
  .transform((url) => url.replace(/\/+$/, ""));

const HttpTools = z.strictObject({
  allow: ToolHosts.default("").describe(
    "Private addresses that callback tools may use: `host` or `host:port`, separated by commas.",
  ),
  bytes: count.default(MIB).describe("Maximum bytes of all callback tools of a tenant."),
  trust_annotations: z
    .boolean()
    .default(false)
    .describe("Trusts the annotations of callback tools that free calls from permissions."),
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
      .describe("Secret of the signatures: `whsec_` and the base64 of 24 to 64 random bytes."),
  })
  .refine(({ url, secret }) => (url === undefined) === (secret === undefined), "must have url and secret");

/** Long enough that it cannot be guessed. */
export const MetricsToken = z.string().min(16, "must have at least 16 characters");

const Metrics = z.strictObject({
  enabled: z.boolean().default(true).describe("Serves `GET /metrics`."),
  token: MetricsToken.optional().describe(
    "Token, at least 16 characters, that reads `/metrics` and `/ready?verbose` without other credentials.",
  ),
});

/** The base64 of 32 bytes. */
export const VaultKey = z
  .string()
  .regex(
    /^[A-Za-z0-9+/]{43}=$/,
    "must be the base64 of 32 random bytes, as `openssl rand -base64 32` prints",
  );

const Vault = z.strictObject({
  key: VaultKey.optional().describe(
    "Key that encrypts the credentials of users: the base64 of 32 random bytes. Without it, the server keeps none.",
  ),
  previous_keys: z
    .array(VaultKey)
    .max(4)
    .default([])
    .describe("Keys before the last change. The server can still read what they encrypted."),
  connections: count.default(50).describe("Maximum number of connections of a user, and of a tenant."),
});

const Interrupts = z.strictObject({ webhook: Webhook.prefault({}) });

export const ServerConfig = z.strictObject({
  listen: Listen.prefault({}),
  workers: Workers.default(1).describe(
    "Processes of this machine that share the port, with `redis` or `postgres`.",
  ),
  data_dir: z
    .string()
    .min(1)
    .default("./data")
    .describe("Folder of the database, the keys and the workspaces."),
  agents_file: z.string().min(1).default("./agents.yaml").describe("File with the agents."),
  store: StoreKind.default("sqlite").describe("Store for threads, runs and events."),
  redis: Redis.prefault({}),
  postgres: Postgres.prefault({}),
  log_level: LogLevel.default("info").describe("Lowest level that the server logs."),
  log_format: LogFormat.default("auto").describe(
    "Format of the log. `auto` writes text at a terminal and JSON elsewhere.",
  ),
  auth: AuthConfig.prefault({}),
  public_url: PublicUrl.optional().describe(
    "Address by which others reach this server. Callback tools deliver late results there.",
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
        .describe("Sites whose pages may use the server, such as `https://app.example.com`."),
    })
    .prefault({}),
  page: z
    .boolean()
    .default(true)
    .describe("Serves the page at `/`. Without it `/` leads to the API reference."),
  traces: z
    .strictObject({
      requests: z
        .boolean()
        .default(false)
        .describe("Keeps each model request, with prompts and tools, for the owner of the run."),
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
    .describe("Protocols of stock front ends that the server enables. `mcp` and `a2a` are off by default."),
  backends: Backends.prefault({}),
  limits: Limits.prefault({}),
  models: z
    .strictObject({
      allow: z
        .array(ModelPattern)
        .max(1000)
        .optional()
        .describe(
          "Patterns of models that runs and overrides may name, besides the models of agents.yaml. Default: all without authentication, otherwise none.",
        ),
    })
    .prefault({}),
  system_messages: z
    .enum(["accept", "refuse"])
    .default("accept")
    .describe("Policy for messages of the role `system` from users."),
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
