// The server's own settings: the schema of config/server.yaml, and the type of what comes out of it. Every key
// has a default that works on a laptop. Durations are written like "10s" and held in milliseconds.

import { BlockList, isIP } from "node:net";
import { z } from "zod";
import { Duration } from "../lib/duration.ts";

const MIB = 1024 * 1024;
const count = z.int().min(1);

const NOT_LOOPBACK =
  "must be an address that only this machine can reach, such as 127.0.0.1: this version has no authentication," +
  " so whoever reaches the port may do everything. To serve others, put a gateway on this machine that" +
  " authenticates them and forwards to it";

export const Host = z.string().refine(isLoopback, NOT_LOOPBACK);
export const Port = z.int().min(0).max(65_535);
export const StoreKind = z.enum(["memory", "sqlite"], {
  error: ({ input }) =>
    input === "redis" ? "must be `sqlite` or `memory`: `redis` is not available in this version" : undefined,
});
export const LogLevel = z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]);

const Listen = z.strictObject({ host: Host.default("127.0.0.1"), port: Port.default(8000) });

/** What is done again and again, or ends something: never at once. */
const Interval = Duration.refine((ms) => ms > 0, "must be longer than 0 s");

export const DockerHost = z
  .string()
  .regex(
    /^(unix:\/\/\/|\/|(tcp|https?):\/\/[^/]+$)/,
    "must be unix:///path/to/docker.sock or tcp://host:port",
  );

const Docker = z.strictObject({
  host: DockerHost.optional(),
  deployment: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, "must be 1 to 64 characters out of A-Z a-z 0-9 _ -")
    .optional(),
  sandboxes: count.default(100),
  sandboxes_per_tenant: count.default(100),
  sweep: Interval.prefault("20s"),
  firewall: z.enum(["managed", "operator"]).default("managed"),
});

const Backends = z.strictObject({ allow_local: z.boolean().default(false), docker: Docker.prefault({}) });

const Limits = z.strictObject({
  body_bytes: count.default(MIB),
  upload_bytes: count.default(1024 * MIB),
  runs: count.default(256),
  queued_runs: z.int().min(0).default(16),
  streams: count.default(10_000),
});

const Streams = z.strictObject({ heartbeat: Interval.prefault("10s"), stall: Interval.prefault("30s") });

const Retention = z.strictObject({
  threads: Interval.prefault("1h"),
  interrupted_threads: Interval.prefault("24h"),
  events: Interval.prefault("24h"),
  sweep: Interval.prefault("5m"),
  memory_bytes: count.default(256 * MIB),
});

const Shutdown = z.strictObject({ grace: Duration.prefault("10s") });

export const ServerConfig = z.strictObject({
  listen: Listen.prefault({}),
  data_dir: z.string().min(1).default("./data"),
  agents_file: z.string().min(1).default("./agents.yaml"),
  store: StoreKind.default("sqlite"),
  log_level: LogLevel.default("info"),
  backends: Backends.prefault({}),
  limits: Limits.prefault({}),
  streams: Streams.prefault({}),
  retention: Retention.prefault({}),
  shutdown: Shutdown.prefault({}),
});
export type ServerConfig = z.output<typeof ServerConfig>;

/** By the text alone: a name is not resolved, and none but `localhost` counts. */
function isLoopback(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return host.toLowerCase() === "localhost";
  return LOOPBACK.check(host, family === 4 ? "ipv4" : "ipv6");
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");
