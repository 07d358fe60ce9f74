// The composition root: creates every room from the configuration and passes to each room only the services that it
// needs.

import type { FastifyBaseLogger } from "fastify";
import packageJson from "../package.json" with { type: "json" };
import { type AgentRegistry, createRegistry, type DefaultModel } from "./agent/agents/registry.ts";
import type { ModelSpec } from "./agent/core/agent.ts";
import type { BackendPool } from "./agent/core/backend.ts";
import type { Connections } from "./agent/core/connections.ts";
import { AppError } from "./agent/core/errors.ts";
import type { HookDefinition } from "./agent/core/hook.ts";
import type { Model } from "./agent/core/model.ts";
import type { OwnSchedules } from "./agent/core/own-schedules.ts";
import type { Tool } from "./agent/core/tool.ts";
import { createHttpToolStore } from "./agent/tools/http/store.ts";
import type { McpServerDefinitions } from "./agent/tools/mcp/options.ts";
import { createMcpServers, type McpServers } from "./agent/tools/mcp/servers.ts";
import { countedDocuments } from "./engine/quotas/counted-documents.ts";
import { createQuotas } from "./engine/quotas/index.ts";
import type { FileSchedules } from "./engine/schedules/file-schedules.ts";
import { watchEventLoop } from "./lib/event-loop.ts";
import { omitUndefined } from "./lib/omit-undefined.ts";
import { watchFiles } from "./lib/watch-files.ts";
import { cachedKeys } from "./server/auth/api-key.ts";
import { keepBootstrapKey } from "./server/auth/bootstrap-key.ts";
import { authProblems } from "./server/auth/config.ts";
import { createCredentials } from "./server/auth/credential-end.ts";
import type { ServerConfig } from "./server/config/server.ts";
import { createDependencies } from "./server/http/dependencies.ts";
import type { HttpServer } from "./server/http/server.ts";
import type { Plugin } from "./server/plugins/definition.ts";
import { createPluginLoader } from "./server/plugins/load.ts";
import { openBackends } from "./skein/app/backends.ts";
import { builtInNames, catalogueOf, extending } from "./skein/app/catalogue.ts";
import { openEngine } from "./skein/app/engine.ts";
import { openServer } from "./skein/app/http-server.ts";
import { accountServers } from "./skein/app/http-tools.ts";
import { BACKLOG, listenFailure } from "./skein/app/listening.ts";
import {
  countReload,
  followBackends,
  type ObservedParts,
  openAuditRecords,
  openMetrics,
  openTraces,
  type Reload,
} from "./skein/app/metrics.ts";
import { type Nouns, openAudit, openNouns, openVault, openWebhooks } from "./skein/app/nouns.ts";
import { ownTools } from "./skein/app/own-tools.ts";
import { reloadAgents } from "./skein/app/reload.ts";
import { loadServerPlugins, refuseAgentParts } from "./skein/app/server-plugins.ts";
import type { Siblings } from "./skein/app/siblings.ts";
import { openApiKeys, openStores, threadTtl } from "./skein/app/stores.ts";
import { warmingUp } from "./skein/app/warm-up.ts";

export { createLogger } from "./skein/app/logger.ts";

export interface AppOptions {
  readonly config: ServerConfig;
  readonly env: NodeJS.ProcessEnv;
  readonly logger: FastifyBaseLogger;
  /** Replaces the model providers, as in tests. */
  readonly createModel?: (spec: ModelSpec) => Model;
  readonly tools?: readonly Tool[];
  /** Hooks that surround the built-in ones. */
  readonly hooks?: readonly HookDefinition[];
  /** Plugins, in addition to those of the configuration. */
  readonly plugins?: readonly Plugin[];
  /** Agents of a program, which replace the agents file. */
  readonly agents?: ProgramAgents;
  /** The other workers, if this process is one of several. */
  readonly siblings?: Siblings;
  /** Replaces the store's clock, as in tests: milliseconds since 1970. */
  readonly now?: () => number;
}

export interface ProgramAgents {
  /**
   * `allowModels`: patterns of the models that runs may request, besides the models of the agents. Default: any model.
   */
  registry(allowModels: readonly string[] | undefined): AgentRegistry;
  /** Adds the agents' own backends to `pool`. */
  withOwn(pool: BackendPool): BackendPool;
}

export interface App {
  readonly server: HttpServer;
  /**
   * Resolves with the address once the server accepts requests and has taken over abandoned runs. Throws `unavailable`.
   */
  listen(): Promise<string>;
  /** The model of the default agent, if an agents file configures it. */
  defaultModel(): DefaultModel | undefined;
  /** Reloads the agents file, which is also watched. Keeps the old agents if it is invalid. Never throws. */
  reload(): Promise<void>;
  /** Ends all runs within the configured grace, every stream with a terminal event, then closes everything. */
  close(): Promise<void>;
}

/** Functions that close the open parts, in the order in which the parts were opened. */
type Closers = (() => Promise<void>)[];

/**
 * Throws `config_invalid` if the agents file is invalid, and `unavailable` if another process is using the store. The
 * caller closes the app.
 */
export async function createApp(options: AppOptions): Promise<App> {
  const closers: Closers = [];
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  try {
    return { ...(await assembled(options, closers)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function assembled(options: AppOptions, closers: Closers): Promise<Omit<App, "close">> {
  const { config, logger, siblings } = options;
  const later: Later = {};
  const described = await openAgents(options, closers, later);
  const keys = await openKeys(options, closers);
  const kept = await openKept(options, described, closers, () => observed);
  later.connections = kept.vault;
  const parts: Parts = {
    ...described,
    ...keys,
    ...kept,
    ...openPool(options, { ...described, ...kept }, closers),
  };
  const { agents, pool, metrics, stores, tools, own } = parts;
  let ownAddress: string | undefined;
  const runs = await openEngine(config, { ...parts, logger, ownAddress: () => ownAddress });
  const accounts = accountServers(parts.tools);
  const nouns = openNouns(config, { ...parts, runs, accounts, ownAddress: () => ownAddress, logger });
  Object.assign(later, portsOf(nouns));
  const { schedules } = nouns.services;
  const dependencies = dependenciesOf(parts, logger);
  const { warn_after } = config.event_loop;
  const eventLoop = warn_after > 0 ? watchEventLoop(warn_after, logger, true) : undefined;
  closers.push(async () => eventLoop?.close());
  const server = await openServer(config, { ...parts, runs, dependencies, nouns, eventLoop, logger });
  const observed: ObservedParts = { runs, dependencies, server };
  closers.push(() => server.close());
  closers.push(() => runs.close(config.shutdown.grace));
  closers.push(() => nouns.close());
  const warmUp = warmingUp(parts, logger);
  closers.push(async () => warmUp.stop());
  const listen = async () => {
    const address = siblings ? await siblings.listen(server) : await listenOn(server, config.listen);
    ownAddress = address;
    await parts.webhooks.open();
    await runs.open();
    parts.audit.open();
    parts.vault?.open();
    // The schema of the agents file has already validated the schedules.
    await schedules.writeFile(agents.schedules() as FileSchedules);
    nouns.open();
    warmUp.begin();
    pool.begin(agents.list().flatMap(({ backend }) => backend ?? []));
    return address;
  };
  const onReloaded = (outcome: Reload) => metrics && countReload(metrics, outcome);
  const reload = () =>
    reloadAgents({ agents, mcp: tools, backends: pool, stores, schedules, logger, onReloaded });
  const watch = watchFiles(() => agents.files(), reload, WATCH);
  closers.push(async () => watch.close());
  const fixed = watchFiles(
    () => own.files,
    async () => logger.warn({ files: own.files }, NEEDS_RESTART),
    WATCH,
  );
  closers.push(async () => fixed.close());
  return { server, listen, reload, defaultModel: () => agents.defaultModel?.() };
}

type AgentParts = Awaited<ReturnType<typeof openAgents>>;
type Keys = Awaited<ReturnType<typeof openKeys>>;
type KeptParts = Awaited<ReturnType<typeof openKept>>;
type Parts = AgentParts & Keys & KeptParts & ReturnType<typeof openPool>;

/** Services of tools that open after the agents. */
interface Later {
  connections?: Connections | undefined;
  schedules?: OwnSchedules | undefined;
}

function portsOf({ agentSchedules: schedules, services: { vault, oauth } }: Nouns): Later {
  const connections = vault &&
    oauth && { access: vault.access, used: vault.used, addressFor: oauth.addressFor };
  return { schedules, connections };
}

const dependenciesOf = ({ stores, backends, pool }: Parts, logger: FastifyBaseLogger) =>
  createDependencies(
    [
      { name: "store", check: () => stores.ping() },
      { name: "backends", check: () => backends.ping() },
      ...pool.engines.map(({ name, ping }) => ({ name: `engine ${name}`, check: ping, isOptional: true })),
    ],
    logger,
  );

/** Opens the plugins, and the agents with the tools of their MCP servers. */
async function openAgents(given: AppOptions, closers: Closers, later: Later) {
  const { config, env, logger } = given;
  const built = ownTools(config, () => later.schedules);
  closers.push(() => built.close());
  const options = { ...given, tools: [...built.tools, ...(given.tools ?? [])] };
  const own = await loadServerPlugins(
    createPluginLoader(),
    config.plugins,
    options.plugins ?? [],
    builtInNames(options),
  );
  const schemes = own.plugins.flatMap(({ plugin }) => plugin.auth ?? []);
  const schemeNames = schemes.map(({ name }) => name);
  const problems = authProblems(config.listen.host, config.auth, schemeNames);
  if (problems.length > 0) throw new AppError("config_invalid", problems.join("\n"));
  let mcp: McpServers | undefined;
  const parts = { ...options, plugins: own.plugins, mcp: () => mcp };
  const extend = extending(createPluginLoader(), parts, own.names);
  const allowModels = config.models.allow ?? (config.auth.scheme === "none" ? undefined : []);
  if (options.agents) refuseAgentParts(own.plugins);
  const agents =
    options.agents?.registry(allowModels) ??
    (await createRegistry({
      file: config.agents_file,
      catalogue: catalogueOf(parts),
      extend,
      env,
      allowModels,
    }));
  for (const warning of [...agents.warnings(), ...quotaWarnings(config)]) logger.warn(warning);
  // The schema of the agents file has already validated the MCP servers.
  const servers = agents.mcpServers() as McpServerDefinitions;
  const tools = createMcpServers(servers, {
    logger,
    version: packageJson.version,
    connections: () => later.connections,
  });
  mcp = tools;
  closers.push(async () => mcp?.close());
  return { own, schemes, agents, tools };
}

async function openKeys({ config, logger }: AppOptions, closers: Closers) {
  const apiKeys = config.auth.scheme === "api_key" ? await openApiKeys(config) : undefined;
  closers.push(async () => apiKeys?.close());
  const { bootstrap_key } = config.auth;
  if (apiKeys && bootstrap_key !== undefined) await keepBootstrapKey(apiKeys.keys, bootstrap_key, logger);
  const findKey = apiKeys && cachedKeys(apiKeys.keys);
  return { apiKeys, findKey, credentials: createCredentials(findKey, logger) };
}

/** Opens the stores, the services on top of them, and their metrics and traces. */
async function openKept(
  { config, env, logger, siblings, now }: AppOptions,
  { agents, own }: AgentParts,
  closers: Closers,
  observed: () => ObservedParts,
) {
  const opened = await openStores(config, omitUndefined({ logger, now }));
  closers.push(() => opened.close());
  const metrics = await openMetrics(config, { agents, stores: opened, siblings }, observed);
  const stores = metrics ? metrics.timed(opened) : opened;
  const traces = await openTraces(env, config.traces, { metrics, logger });
  closers.push(async () => traces?.close());
  for (const warning of stores.warnings ?? []) logger.warn(warning);
  const webhooks = openWebhooks(config, stores, { logger, metrics });
  closers.push(() => webhooks.close());
  const records = await openAuditRecords(env, config.audit, { metrics, logger });
  closers.push(async () => records?.close());
  const audit = openAudit(config, stores, { logger, metrics, webhooks, records });
  closers.push(() => audit.close());
  const { onNear } = webhooks;
  const quotas = createQuotas(stores.quotas, config.quotas, { threadMs: threadTtl(config), logger, onNear });
  const counted = countedDocuments(stores.documents, quotas, new Set(["tools"]));
  const httpTools = createHttpToolStore(counted, config.http_tools.bytes);
  const vaultKey = own.plugins.find(({ plugin }) => plugin.vaultKey)?.plugin.vaultKey;
  const vault = openVault(config, stores, { vaultKey, audit, logger });
  // Runs and requests use it until they end.
  closers.push(async () => vault?.close());
  return { stores, metrics, traces, quotas, httpTools, webhooks, audit, vault };
}

function openPool(
  { config, logger, siblings, agents }: AppOptions,
  { own, stores, metrics, vault }: Pick<AgentParts & KeptParts, "own" | "stores" | "metrics" | "vault">,
  closers: Closers,
) {
  const onStatus = metrics && followBackends(metrics);
  const pool = openBackends(config, stores, logger, {
    ...{ plugins: own.plugins, onStatus, siblings },
    connections: vault,
  });
  closers.push(() => pool.close());
  return { pool, backends: agents?.withOwn(pool) ?? pool };
}

function quotaWarnings({ auth, quotas: { tenant, user } }: ServerConfig): string[] {
  const hasLimits = Object.keys({ ...tenant, ...user }).length > 0;
  if (auth.scheme === "none" || hasLimits) return [];
  return [
    `AUTH=${auth.scheme} serves several tenants, but \`quotas\` sets no limit: each tenant may use any number of tokens, threads and runs. Set \`quotas.tenant\` or \`quotas.user\` in server.yaml.`,
  ];
}

const NEEDS_RESTART = "a plugin of server.yaml has changed: restart the server to load it";

/**
 * How often the agents file and the plugins are checked, and how long they must stay unchanged before a change counts.
 */
const WATCH = { everyMs: 1000, settledMs: 200 };

async function listenOn(server: HttpServer, place: ServerConfig["listen"]): Promise<string> {
  try {
    return await server.listen({ ...place, backlog: BACKLOG });
  } catch (error) {
    throw listenFailure(place, error);
  }
}
