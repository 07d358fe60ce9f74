// The environment variables that override config/server.yaml. An empty variable counts as unset.

import { z } from "zod";
import { checkSeldom, sentence } from "../../lib/check.ts";
import { HostName, Network, Origin } from "../../lib/hosts.ts";
import type { Variables } from "../../lib/yaml/interpolate.ts";
import { AuthConfig, JwtAlgorithm, JwtConfig, SchemeName, TicketSecret } from "../auth/config.ts";
import { DockerHost } from "./backends.ts";
import {
  Host,
  LogFormat,
  LogLevel,
  MetricsToken,
  Port,
  PostgresUrl,
  PublicUrl,
  RedisUrl,
  type ServerConfig,
  StoreKind,
  VaultKey,
  Workers,
} from "./server.ts";
import { ToolHosts } from "./tool-hosts.ts";

/** `a, b` */
const list = <T extends z.ZodType<unknown, string>>(item: T) =>
  z
    .string()
    .transform((text) => text.split(",").map((each) => each.trim()))
    .pipe(z.array(item));

const whole = z.string().regex(/^\d+$/, "must be a whole number").transform(Number);

export const Settings = z.object({
  AUTH: SchemeName.optional(),
  TRUSTED_PROXIES: list(Network).optional(),
  AUTH_HOSTS: list(HostName).optional(),
  JWT_JWKS_URL: JwtConfig.shape.jwks_url.optional(),
  JWT_ISSUER: JwtConfig.shape.issuer.optional(),
  JWT_AUDIENCE: JwtConfig.shape.audience.optional(),
  JWT_ALGORITHMS: list(JwtAlgorithm).optional(),
  JWT_TENANT_CLAIM: z.string().optional(),
  JWT_USER_CLAIM: z.string().optional(),
  JWT_SCOPES_CLAIM: z.string().optional(),
  TICKET_SECRET: TicketSecret.optional(),
  BOOTSTRAP_API_KEY: AuthConfig.shape.bootstrap_key,
  CORS_ORIGINS: list(Origin).optional(),
  PUBLIC_URL: PublicUrl.optional(),
  HTTP_TOOLS_ALLOW: ToolHosts.optional(),
  VAULT_KEY: VaultKey.optional(),
  VAULT_PREVIOUS_KEYS: list(VaultKey).optional(),
  CONFIG_FILE: z.string().optional(),
  HOST: Host.optional(),
  PORT: whole.pipe(Port).optional(),
  WORKERS: whole.pipe(Workers).optional(),
  DATA_DIR: z.string().optional(),
  AGENTS_FILE: z.string().optional(),
  STORE: StoreKind.optional(),
  REDIS_URL: RedisUrl.optional(),
  POSTGRES_URL: PostgresUrl.optional(),
  DATABASE_URL: z.string().optional(),
  DOCKER_HOST: DockerHost.optional(),
  LOG_LEVEL: LogLevel.optional(),
  LOG_FORMAT: LogFormat.optional(),
  METRICS_TOKEN: MetricsToken.optional(),
  ALLOW_LOCAL_BACKEND: z
    .enum(["true", "false", "1", "0"])
    .transform((text) => text === "true" || text === "1")
    .optional(),
});
export type Settings = z.output<typeof Settings>;

export function readEnvironment(env: Variables): { value: Settings } | { problems: string[] } {
  const set = Object.fromEntries(
    Object.keys(Settings.shape).flatMap((name) => (env[name] ? [[name, env[name]]] : [])),
  );
  const checked = checkSeldom(Settings, set);
  if ("value" in checked) return checked;
  return {
    problems: checked.faults.map((fault) => `environment: ${sentence(fault, env[String(fault.path[0])])}`),
  };
}

/**
 * The keys of server.yaml that variables override. `CONFIG_FILE` is the path of the file itself, and `DATABASE_URL`
 * replaces a missing `POSTGRES_URL`.
 */
export const VARIABLES: Readonly<Record<Exclude<keyof Settings, "CONFIG_FILE" | "DATABASE_URL">, string>> = {
  HOST: "listen.host",
  PORT: "listen.port",
  WORKERS: "workers",
  DATA_DIR: "data_dir",
  AGENTS_FILE: "agents_file",
  STORE: "store",
  REDIS_URL: "redis.url",
  POSTGRES_URL: "postgres.url",
  LOG_LEVEL: "log_level",
  LOG_FORMAT: "log_format",
  AUTH: "auth.scheme",
  TRUSTED_PROXIES: "auth.trusted_proxies",
  AUTH_HOSTS: "auth.hosts",
  BOOTSTRAP_API_KEY: "auth.bootstrap_key",
  JWT_JWKS_URL: "auth.jwt.jwks_url",
  JWT_ISSUER: "auth.jwt.issuer",
  JWT_AUDIENCE: "auth.jwt.audience",
  JWT_ALGORITHMS: "auth.jwt.algorithms",
  JWT_TENANT_CLAIM: "auth.jwt.tenant_claim",
  JWT_USER_CLAIM: "auth.jwt.user_claim",
  JWT_SCOPES_CLAIM: "auth.jwt.scopes_claim",
  TICKET_SECRET: "auth.ticket_secret",
  METRICS_TOKEN: "metrics.token",
  CORS_ORIGINS: "cors.origins",
  ALLOW_LOCAL_BACKEND: "backends.allow_local",
  DOCKER_HOST: "backends.docker.host",
  PUBLIC_URL: "public_url",
  HTTP_TOOLS_ALLOW: "http_tools.allow",
  VAULT_KEY: "vault.key",
  VAULT_PREVIOUS_KEYS: "vault.previous_keys",
};

/** Returns `config` with the values from the environment. */
export function override(config: ServerConfig, settings: Settings): ServerConfig {
  const values = { ...settings, POSTGRES_URL: postgresUrl(settings) };
  return Object.entries(VARIABLES).reduce(
    (changed, [name, path]) => withValue(changed, path.split("."), values[name as keyof typeof values]),
    config,
  );
}

/** Returns a copy of `settings` with `value` at `path`, or `settings` unchanged if `value` is undefined. */
function withValue<T extends object>(settings: T, [key = "", ...path]: string[], value: unknown): T {
  if (value === undefined) return settings;
  const inner = settings[key as keyof T] as object;
  return { ...settings, [key]: path.length === 0 ? value : withValue(inner, path, value) };
}

/** `DATABASE_URL` may be meant for another program and point to another kind of database. */
function postgresUrl({ POSTGRES_URL, DATABASE_URL }: Settings): string | undefined {
  return POSTGRES_URL ?? PostgresUrl.safeParse(DATABASE_URL).data;
}
