// The server's settings: the schema of config/server.yaml and its type. Every key has a default that works on a laptop.
// Durations are written like "10s" and held in milliseconds.

import { z } from "zod";
import { ModelPattern } from "../../agent/core/model.ts";
import { PluginList, pluginRefs } from "../../agent/core/plugin-ref.ts";
import { QuotaConfig } from "../../engine/quotas/config.ts";
import { hostList, isLoopback, Origin } from "../../lib/hosts.ts";
import { Duration, Lifetime, Size } from "../../lib/units.ts";
import { WEBHOOK_SECRET } from "../../lib/webhook-signature.ts";
import { AuthConfig } from "../auth/config.ts";
import { DEFAULT_WIRES, WireName } from "./wire-names.ts";

const MIB = 1024 * 1024;
const count = z.int().min(1);

export const Host = z.string().min(1);
export const Port = z.int().min(0).max(65_535);
/** More than one machine has cores for is a mistake, such as a port in the wrong place. */
export const Workers = z.int().min(1).max(256);
export const StoreKind = z.enum(["memory", "sqlite", "redis", "postgres"]);
export const LogLevel = z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]);
export const LogFormat = z.enum(["auto", "json", "text"]);

const Listen = z.strictObject({ host: Host.default("127.0.0.1"), port: Port.default(8000) });

/** An interval or a deadline: longer than zero. */
const Interval = Duration.refine((ms) => ms > 0, "must be longer than 0 s");

export const DockerHost = z
  .string()
  .regex(
    /^(unix:\/\/\/|\/|(tcp|https?):\/\/[^/]+$)/,
    "must be unix:///path/to/docker.sock or tcp://host:port",
  );

export const RedisUrl = z
  .string()
  .regex(
    /^rediss?:\/\/[^/]+(\/\d{1,3})?$/,
    "must be redis://[user:password@]host[:port][/database], or rediss:// for TLS",
  );

const Redis = z.strictObject({
  url: RedisUrl.default("redis://127.0.0.1:6379"),
  lease: Interval.refine((ms) => ms >= 1000, "must be at least 1 s").prefault("10s"),
  wait_replicas: z.int().min(0).default(0),
});

export const PostgresUrl = z
  .string()
  .regex(
    /^postgres(ql)?:\/\/[^\s]*\/[^\s/]+$/,
    "must be postgres://[user:password@]host[:port]/database, with ?sslmode=verify-full for TLS",
  );

const Postgres = z.strictObject({
  url: PostgresUrl.default("postgres://127.0.0.1:5432/skein"),
  lease: Interval.refine((ms) => ms >= 1000, "must be at least 1 s").prefault("10s"),
  pool: count.default(10),
});

const Tls = z.strictObject({ ca: z.string().min(1), cert: z.string().min(1), key: z.string().min(1) });

/** Access to an engine is root access to its machine, so it is never reached over a network without certificates. */
const isOpenToNetwork = ({ host, tls }: { host: string; tls?: object | undefined }) =>
  /^(tcp|https?):/.test(host) && !tls && !isLoopback(new URL(host).hostname.replace(/^\[|\]$/g, ""));

const DockerEngine = z
  .strictObject({
    name: z
      .string()
      .regex(
        /^[a-z0-9][a-z0-9-]{0,31}$/,
        "must be 1 to 32 characters out of a-z 0-9 -, for example `east-1`",
      ),
    host: DockerHost,
    tls: Tls.optional(),
    drain: z.boolean().default(false),
    sandboxes: count.optional(),
  })
  .refine((engine) => !isOpenToNetwork(engine), {
    path: ["tls"],
    error:
      "is missing: access to an engine is root access to its machine. Name the files of certificates, as in `tls: { ca: ca.pem, cert: cert.pem, key: key.pem }`; only an engine on this machine may do without",
  })
  .refine(({ host, tls }) => !tls || /^(tcp|https):/.test(host), {
    path: ["tls"],
    error: "is for an engine at tcp://host:port; a socket has none",
  });

const DockerEngines = z
  .array(DockerEngine)
  .min(1)
  .max(64)
  .refine((engines) => new Set(engines.map(({ name }) => name)).size === engines.length, {
    error: "must have names that differ: a sandbox is found again by the name of its engine",
  });

const Docker = z.strictObject({
  host: DockerHost.optional(),
  engines: DockerEngines.optional(),
  deployment: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, "must be 1 to 64 characters out of A-Z a-z 0-9 _ -")
    .optional(),
  sandboxes: count.default(100),
  sandboxes_per_tenant: count.optional(),
  disk_per_tenant: Size.optional(),
  sweep: Interval.prefault("20s"),
  firewall: z.enum(["managed", "operator"]).default("managed"),
});

const Backends = z.strictObject({ allow_local: z.boolean().default(false), docker: Docker.prefault({}) });

const Limits = z.strictObject({
  body_bytes: count.default(MIB),
  body_entries: count.default(20_000),
  incoming_bytes: count.default(256 * MIB),
  upload_bytes: count.default(1024 * MIB),
  request_timeout: Interval.prefault("60s"),
  runs: count.default(500),
  subagents: count.default(256),
  subagents_per_run: count.default(16),
  subagents_in_all: count.default(200),
  queued_runs: z.int().min(0).default(16),
  waiting_threads: count.default(1000),
  thread_bytes: count.default(32 * MIB),
  streams: count.default(10_000),
  unread_bytes: count.default(256 * MIB),
  connections: count.default(20_000),
  connections_per_address: count.optional(),
});

const Streams = z.strictObject({ heartbeat: Interval.prefault("10s"), stall: Interval.prefault("30s") });

const Retention = z.strictObject({
  threads: Lifetime.optional(),
  interrupted_threads: Lifetime.prefault("24h"),
  events: Lifetime.prefault("24h"),
  sweep: Interval.prefault("5m"),
  memory_bytes: count.default(256 * MIB),
});

const EventLoop = z.strictObject({ warn_after: Duration.prefault("50ms") });

// What has to end within the ten seconds of `docker stop` ends in time.
const Shutdown = z.strictObject({ grace: Duration.prefault("8s") });

/** `host` or `host:port`, several with commas. */
export const ToolHosts = z.string().superRefine((text, context) => {
  try {
    hostList(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : "cannot be read";
    context.addIssue({ code: "custom", message: `must be a list such as tools.internal:8080: it ${why}` });
  }
});

export const PublicUrl = z
  .url({ protocol: /^https?$/, error: "must be a URL that begins with http:// or https://" })
  .transform((url) => url.replace(/\/+$/, ""));

const HttpTools = z.strictObject({
  allow: ToolHosts.default(""),
  bytes: count.default(MIB),
  trust_annotations: z.boolean().default(false),
});

const Webhook = z
  .strictObject({
    url: z
      .url({ protocol: /^https?$/, error: "must be a URL that begins with http:// or https://" })
      .optional(),
    secret: z
      .string()
      .regex(WEBHOOK_SECRET, "must be whsec_ and the base64 of at least 24 random bytes")
      .optional(),
  })
  .refine(({ url, secret }) => (url === undefined) === (secret === undefined), "must have url and secret");

/** Long enough not to be guessed. */
export const MetricsToken = z.string().min(16, "must have at least 16 characters");

const Metrics = z.strictObject({ enabled: z.boolean().default(true), token: MetricsToken.optional() });

const Interrupts = z.strictObject({ webhook: Webhook.prefault({}) });

export const ServerConfig = z.strictObject({
  listen: Listen.prefault({}),
  workers: Workers.default(1),
  data_dir: z.string().min(1).default("./data"),
  agents_file: z.string().min(1).default("./agents.yaml"),
  store: StoreKind.default("sqlite"),
  redis: Redis.prefault({}),
  postgres: Postgres.prefault({}),
  log_level: LogLevel.default("info"),
  log_format: LogFormat.default("auto"),
  auth: AuthConfig.prefault({}),
  public_url: PublicUrl.optional(),
  http_tools: HttpTools.prefault({}),
  cors: z.strictObject({ origins: z.array(Origin).max(100).default([]) }).prefault({}),
  page: z.boolean().default(true),
  traces: z
    .strictObject({ requests: z.boolean().default(false), contents: z.boolean().default(false) })
    .prefault({}),
  metrics: Metrics.prefault({}),
  wires: z.array(WireName).default([...DEFAULT_WIRES]),
  backends: Backends.prefault({}),
  limits: Limits.prefault({}),
  models: z.strictObject({ allow: z.array(ModelPattern).max(1000).optional() }).prefault({}),
  system_messages: z.enum(["accept", "refuse"]).default("accept"),
  quotas: QuotaConfig.prefault({}),
  interrupts: Interrupts.prefault({}),
  streams: Streams.prefault({}),
  retention: Retention.prefault({}),
  event_loop: EventLoop.prefault({}),
  shutdown: Shutdown.prefault({}),
  plugins: PluginList.default([]).transform((modules) => pluginRefs(modules, "server.yaml")),
});
export type ServerConfig = z.output<typeof ServerConfig>;
