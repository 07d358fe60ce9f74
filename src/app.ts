// The composition root: builds every room from the configuration and hands each exactly what it needs.

import type { FastifyBaseLogger } from "fastify";
import packageJson from "../package.json" with { type: "json" };
import type { Catalogue } from "./agents/catalogue.ts";
import { type AgentRegistry, createRegistry } from "./agents/registry.ts";
import { BackendOptions } from "./backends/index.ts";
import { createLedger } from "./backends/ledger.ts";
import { createBackendPool, type ProcessBackends } from "./backends/pool.ts";
import type { ServerConfig } from "./config/server.ts";
import type { ModelSpec } from "./core/agent.ts";
import { AppError, hasCode } from "./core/errors.ts";
import type { HookDefinition } from "./core/hook.ts";
import type { Owner } from "./core/ids.ts";
import type { Model } from "./core/model.ts";
import type { Tool } from "./core/tool.ts";
import { hooks } from "./hooks/index.ts";
import { OwnRuleSpec } from "./hooks/permissions/rule.ts";
import { cachedKeys } from "./http/auth/api-key.ts";
import { createApiKeys } from "./http/auth/api-keys.ts";
import { authProblems } from "./http/auth/config.ts";
import { type Credentials, createCredentials } from "./http/auth/credential-end.ts";
import { createServer, type HttpServer, noteRequests } from "./http/server.ts";
import { watchEventLoop } from "./lib/event-loop.ts";
import { hostList, within } from "./lib/hosts.ts";
import { createPublicFetch, isRefused } from "./lib/ssrf-safe-fetch/index.ts";
import { watchFiles } from "./lib/watch-files.ts";
import { createModel, missingKey } from "./models/index.ts";
import { createQuotas } from "./quotas/index.ts";
import { createEngine } from "./runs/index.ts";
import { logRecorder } from "./runs/logging.ts";
import type { StartingKeys } from "./runs/services.ts";
import { InterruptWebhook } from "./runs/webhook.ts";
import type { AllStores } from "./stores/all-stores.ts";
import { createMemoryStores } from "./stores/memory/index.ts";
import { DEFAULTS } from "./stores/options.ts";
import { createRedisStores, openRedisKeys } from "./stores/redis/on-demand.ts";
import { createSqliteStores } from "./stores/sqlite/index.ts";
import { openSqliteKeyFile } from "./stores/sqlite/key-file.ts";
import { maskedCalls } from "./tools/http/deferral.ts";
import { createHttpTools } from "./tools/http/index.ts";
import { createHttpToolStore, type HttpToolStore } from "./tools/http/store.ts";
import { McpServerDefinitions } from "./tools/mcp/options.ts";
import { createMcpServers, type McpServers } from "./tools/mcp/servers.ts";
import { nativeTools } from "./tools/native.ts";

export interface AppOptions {
  readonly config: ServerConfig;
  readonly env: NodeJS.ProcessEnv;
  readonly logger: FastifyBaseLogger;
  /** Replaces the providers, as in tests. */
  readonly createModel?: (spec: ModelSpec) => Model;
  readonly tools?: readonly Tool[];
  /** Wrapped around the built-in ones. */
  readonly hooks?: readonly HookDefinition[];
}

export interface App {
  readonly server: HttpServer;
  /** Resolves with the address once requests are accepted and abandoned runs are taken over. Throws `unavailable`. */
  listen(): Promise<string>;
  /** Reloads the agents file, which is also watched. Keeps the old agents if it is invalid. Never throws. */
  reload(): Promise<void>;
  /** Ends all runs within the configured grace, every stream with a terminal event, then closes everything. */
  close(): Promise<void>;
}

/** Throws `config_invalid` for the agents file, `unavailable` for a store in use. The caller closes it. */
export async function createApp(options: AppOptions): Promise<App> {
  const { config, env, logger } = options;
  const closers: (() => Promise<void>)[] = [];
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };

  try {
    const problems = authProblems(config.listen.host, config.auth);
    if (problems.length > 0) throw new AppError("config_invalid", problems.join("\n"));
    let mcp: McpServers | undefined;
    const catalogue = catalogueOf(env, options, () => mcp?.tools() ?? []);
    const allowModels = config.models.allow ?? (config.auth.scheme === "none" ? undefined : []);
    const agents = await createRegistry({ file: config.agents_file, catalogue, env, allowModels });
    for (const warning of [...agents.warnings(), ...quotaWarnings(config)]) logger.warn(warning);
    // The catalogue's schema has made it.
    const servers = agents.mcpServers() as McpServerDefinitions;
    const tools = createMcpServers(servers, { logger, version: packageJson.version });
    mcp = tools;
    closers.push(async () => mcp?.close());
    const apiKeys = config.auth.scheme === "api_key" ? await openApiKeys(config) : undefined;
    closers.push(async () => apiKeys?.close());
    const findKey = apiKeys && cachedKeys(apiKeys.keys);
    const credentials = createCredentials(findKey, logger);
    const stores = await openStores(config);
    closers.push(() => stores.close());
    const httpTools = createHttpToolStore(stores.documents, config.http_tools.bytes);
    const quotas = createQuotas(stores.quotas, config.quotas, { threadMs: threadTtl(config) });
    const backends = openBackends(config, stores, logger);
    closers.push(() => backends.close());

    const recorder = logger.level === "debug" || logger.level === "trace" ? logRecorder(logger) : undefined;
    const { url, secret } = config.interrupts.webhook;
    const webhook = url && secret ? new InterruptWebhook({ url, secret }, logger) : undefined;
    closers.push(async () => webhook?.close());
    const runs = createEngine({
      threadBytes: config.limits.thread_bytes,
      stores: { ...stores, deferredCalls: maskedCalls(stores.deferredCalls, httpTools) },
      agents,
      backends,
      quotas,
      logger,
      maxActive: config.limits.runs,
      hasSeveralTenants: config.auth.scheme !== "none",
      subagentLimits: {
        atOnce: config.limits.subagents,
        perRun: config.limits.subagents_per_run,
        inAll: config.limits.subagents_in_all,
      },
      tenantTools: tenantTools(config, httpTools, stores),
      startingKeys: config.auth.on_revoked === "cancel" ? startingKeys(credentials) : undefined,
      ...(recorder ? { recorder } : {}),
      ...(webhook ? { onInterrupted: (run) => webhook.notify(run) } : {}),
    });
    const { streams, limits } = config;
    const server = await createServer(
      {
        stores,
        runs,
        backends,
        agents,
        quotas,
        version: packageJson.version,
        httpTools,
        permissionRule: OwnRuleSpec,
        isRefusedTool: refusedTools(config),
        refusesSystemMessages: config.system_messages === "refuse",
        access: {
          auth: { ticket_secret: stores.shared?.secret, ...config.auth },
          findKey,
          credentials,
          origins: config.cors.origins,
          publicUrl: config.public_url,
        },
        limits: {
          bodyBytes: limits.body_bytes,
          bodyEntries: limits.body_entries,
          requestMs: limits.request_timeout,
          uploadBytes: limits.upload_bytes,
          streams: limits.streams,
          connections: {
            total: limits.connections,
            perAddress: limits.connections_per_address,
            isGateway: within(config.auth.trusted_proxies),
          },
          heartbeatMs: streams.heartbeat,
          stallMs: streams.stall,
        },
        wires: config.wires,
      },
      logger,
    );
    closers.push(() => server.close());
    closers.push(() => runs.close(config.shutdown.grace));
    const { warn_after } = config.event_loop;
    if (warn_after > 0) {
      const watch = watchEventLoop(warn_after, logger);
      closers.push(async () => watch.close());
      noteRequests(server, watch);
    }
    const listen = async () => {
      const address = await listenOn(server, config.listen);
      await runs.open();
      backends.begin(agents.list().flatMap(({ backend }) => backend ?? []));
      return address;
    };
    const reload = () => reloadAgents({ agents, mcp: tools, backends, stores, logger });
    const watch = watchFiles(() => agents.files(), reload, WATCH);
    closers.push(async () => watch.close());
    return { server, close, listen, reload };
  } catch (error) {
    await close();
    throw error;
  }
}

function quotaWarnings({ auth, quotas: { tenant, user } }: ServerConfig): string[] {
  const hasLimits = Object.keys({ ...tenant, ...user }).length > 0;
  if (auth.scheme === "none" || hasLimits) return [];
  return [
    `AUTH=${auth.scheme} serves several tenants, and \`quotas\` sets no limit: each of them may use any number of tokens, threads and runs. Set \`quotas.tenant\` or \`quotas.user\` in server.yaml.`,
  ];
}

/** For changes of the agents file. */
const WATCH = { everyMs: 1000, settledMs: 200 };

interface Reloaded {
  readonly agents: AgentRegistry;
  readonly mcp: McpServers;
  readonly backends: ProcessBackends;
  readonly stores: AllStores;
  readonly logger: FastifyBaseLogger;
}

/** A broken file changes nothing. Runs keep the agent that they began with. Never throws. */
async function reloadAgents({ agents, mcp, backends, stores, logger }: Reloaded): Promise<void> {
  try {
    if (!(await agents.reload())) return;
    for (const warning of agents.warnings()) logger.warn(warning);
    backends.begin(agents.list().flatMap(({ backend }) => backend ?? []));
    stores.bus.announce({ event: "config_changed", data: {} });
    logger.info({ agents: agents.list().map(({ name }) => name) }, "the agents file was reloaded");
    // The catalogue's schema has made it.
    await mcp.replace(agents.mcpServers() as McpServerDefinitions);
  } catch (err) {
    logger.error({ err }, "the agents file is invalid; the previous configuration stays in effect");
  }
}

async function listenOn(server: HttpServer, listen: ServerConfig["listen"]): Promise<string> {
  try {
    return await server.listen(listen);
  } catch (error) {
    const { host, port } = listen;
    const why = error instanceof Error && "code" in error ? String(error.code) : "unknown reason";
    const what = why === "EADDRINUSE" ? "is taken" : `cannot be listened on (${why})`;
    throw new AppError("unavailable", `${host}:${port} ${what}. Set PORT to another one.`, { cause: error });
  }
}

/** The parts of this server's agents. `listed` returns the current tools of MCP servers. */
export function catalogueOf(
  env: NodeJS.ProcessEnv,
  {
    tools = [],
    hooks: own = [],
    createModel: create,
  }: Pick<AppOptions, "tools" | "hooks" | "createModel"> = {},
  listed: () => readonly Tool[] = () => [],
): Catalogue {
  return {
    hooks: [...own, ...hooks],
    tools: () => [...nativeTools, ...tools, ...listed()],
    mcpServers: McpServerDefinitions,
    backends: BackendOptions,
    createModel: create ?? ((spec) => createModel(spec, env)),
    missingKey: (spec) => missingKey(spec, env),
  };
}

/** Of the reasons for which a key ends only its revocation counts. */
function startingKeys(credentials: Credentials): StartingKeys {
  return {
    isRevoked: async (api_key) => hasCode(await credentials.endOf({ api_key }), "credentials_revoked"),
    watch: (api_key, onRevoked) =>
      credentials.watch({ api_key }, (reason) => {
        if (hasCode(reason, "credentials_revoked")) onRevoked();
      }),
  };
}

/** Time limit of a DNS lookup at registration. A name that takes longer is checked when it is called. */
const LOOKUP_MS = 2_000;

function refusedTools({ http_tools }: ServerConfig): (url: URL) => Promise<boolean> {
  const options = { allow: hostList(http_tools.allow) };
  return (url) => isRefused(url, options, AbortSignal.timeout(LOOKUP_MS));
}

/** The tenants' registered tools, read when a run begins. */
function tenantTools(
  { public_url, http_tools }: ServerConfig,
  httpTools: HttpToolStore,
  { deferredCalls: store }: AllStores,
) {
  const fetch = createPublicFetch({ allow: hostList(http_tools.allow) });
  const urlOf = (token: string) => `${public_url}/tool-results/${token}`;
  const services = {
    fetch,
    trustAnnotations: http_tools.trust_annotations,
    ...(public_url === undefined ? {} : { deferral: { store, urlOf } }),
  };
  return async ({ tenant }: Owner, agent: string) =>
    createHttpTools(await httpTools.listFor(tenant, agent), services);
}

function openBackends(
  config: ServerConfig,
  { documents, bus, shared }: AllStores,
  logger: FastifyBaseLogger,
) {
  const { allow_local, docker } = config.backends;
  return createBackendPool({
    dataDir: config.data_dir,
    allowSeveralUsers: allow_local,
    sandboxes: createLedger(documents),
    logger,
    docker: {
      host: docker.host,
      firewall: docker.firewall,
      isShared: shared !== undefined,
      deployment: docker.deployment ?? shared?.deployment,
      caps: { total: docker.sandboxes, tenant: docker.sandboxes_per_tenant ?? halfOf(config) },
      sweepMs: docker.sweep,
    },
    onStatus: (owner, data) => bus.publish(owner, { event: "backend_status", data }),
  });
}

/** Of the sandboxes, where there may be several tenants; at least one. */
function halfOf({ auth, backends: { docker } }: ServerConfig): number {
  return auth.scheme === "none" ? docker.sandboxes : Math.max(1, Math.floor(docker.sandboxes / 2));
}

/** How long an unused thread is kept, in ms. Without a setting the database keeps threads until they are deleted. */
function threadTtl({ store, retention }: ServerConfig): number {
  return retention.threads ?? (store === "sqlite" ? Number.POSITIVE_INFINITY : DEFAULTS.threadTtlMs);
}

/** The caller closes them. */
export async function openStores(config: ServerConfig): Promise<AllStores> {
  const { store, data_dir, redis, limits, retention } = config;
  const all = {
    threadTtlMs: threadTtl(config),
    interruptedTtlMs: retention.interrupted_threads,
    queueLength: limits.queued_runs,
    tenantQueueLength: limits.waiting_threads,
    eventRetentionMs: retention.events,
    sweepMs: retention.sweep,
  };
  if (store === "sqlite") return createSqliteStores({ dataDir: data_dir, ...all });
  if (store === "redis") {
    const { url, lease: leaseMs, wait_replicas: waitReplicas } = redis;
    return createRedisStores({ url, leaseMs, waitReplicas, ...all });
  }
  return createMemoryStores({ maxBytes: retention.memory_bytes, ...all });
}

/** For the command line and the server. The caller closes them. */
export async function openApiKeys({ store, data_dir, redis }: ServerConfig) {
  const opened = store === "redis" ? await openRedisKeys(redis.url) : openSqliteKeyFile(data_dir);
  return { keys: createApiKeys(opened.documents), close: opened.close };
}
