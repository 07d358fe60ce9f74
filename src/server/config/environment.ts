// The environment variables that override config/server.yaml. A variable that is empty counts as not set.

import { z } from "zod";
import { checkSeldom, sentence } from "../../lib/check.ts";
import { HostName, Network, Origin } from "../../lib/hosts.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { Variables } from "../../lib/yaml/interpolate.ts";
import { AuthConfig, JwtAlgorithm, JwtConfig, SchemeName, TicketSecret } from "../auth/config.ts";
import {
  DockerHost,
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
  ToolHosts,
  Workers,
} from "./server.ts";

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

/** `config` with the values of the environment. */
export function override(config: ServerConfig, settings: Settings): ServerConfig {
  const { HOST, PORT, DATA_DIR, AGENTS_FILE, STORE, REDIS_URL, LOG_LEVEL } = settings;
  const { ALLOW_LOCAL_BACKEND, DOCKER_HOST } = settings;
  return {
    ...config,
    auth: overrideAuth(config.auth, settings),
    cors: { ...config.cors, ...omitUndefined({ origins: settings.CORS_ORIGINS }) },
    ...omitUndefined({ data_dir: DATA_DIR, agents_file: AGENTS_FILE, store: STORE, log_level: LOG_LEVEL }),
    ...omitUndefined({ log_format: settings.LOG_FORMAT, workers: settings.WORKERS }),
    ...omitUndefined({ public_url: settings.PUBLIC_URL }),
    metrics: { ...config.metrics, ...omitUndefined({ token: settings.METRICS_TOKEN }) },
    http_tools: { ...config.http_tools, ...omitUndefined({ allow: settings.HTTP_TOOLS_ALLOW }) },
    redis: { ...config.redis, ...omitUndefined({ url: REDIS_URL }) },
    postgres: { ...config.postgres, ...omitUndefined({ url: postgresUrl(settings) }) },
    listen: { ...config.listen, ...omitUndefined({ host: HOST, port: PORT }) },
    backends: {
      ...config.backends,
      ...omitUndefined({ allow_local: ALLOW_LOCAL_BACKEND }),
      docker: { ...config.backends.docker, ...omitUndefined({ host: DOCKER_HOST }) },
    },
  };
}

/** `DATABASE_URL` may be another program's, and of another database. */
function postgresUrl({ POSTGRES_URL, DATABASE_URL }: Settings): string | undefined {
  return POSTGRES_URL ?? PostgresUrl.safeParse(DATABASE_URL).data;
}

function overrideAuth(auth: AuthConfig, settings: Settings): AuthConfig {
  const { AUTH, TRUSTED_PROXIES, TICKET_SECRET, JWT_JWKS_URL, JWT_ISSUER, JWT_AUDIENCE, JWT_ALGORITHMS } =
    settings;
  const { JWT_TENANT_CLAIM, JWT_USER_CLAIM, JWT_SCOPES_CLAIM } = settings;
  return {
    ...auth,
    ...omitUndefined({ scheme: AUTH, trusted_proxies: TRUSTED_PROXIES, ticket_secret: TICKET_SECRET }),
    ...omitUndefined({ hosts: settings.AUTH_HOSTS, bootstrap_key: settings.BOOTSTRAP_API_KEY }),
    jwt: {
      ...auth.jwt,
      ...omitUndefined({ jwks_url: JWT_JWKS_URL, issuer: JWT_ISSUER, audience: JWT_AUDIENCE }),
      ...omitUndefined({ algorithms: JWT_ALGORITHMS, tenant_claim: JWT_TENANT_CLAIM }),
      ...omitUndefined({ user_claim: JWT_USER_CLAIM, scopes_claim: JWT_SCOPES_CLAIM }),
    },
  };
}
