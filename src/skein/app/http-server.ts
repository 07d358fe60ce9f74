// Creates the HTTP server from the settings and from the services that its routes use.

import packageJson from "../../../package.json" with { type: "json" };
import { OwnRuleSpec } from "../../agent/hooks/permissions/rule.ts";
import type { UserKeys } from "../../engine/admin/services.ts";
import type { Engine } from "../../engine/runs/index.ts";
import type { AllStores } from "../../engine/stores/all-stores.ts";
import type { EventLoopWatch } from "../../lib/event-loop.ts";
import { within } from "../../lib/hosts.ts";
import { createLedger, forgetEngine } from "../../sandbox/ledger.ts";
import type { ApiKeyStore } from "../../server/auth/api-keys.ts";
import type { OwnScheme } from "../../server/auth/own-scheme.ts";
import type { ServerConfig } from "../../server/config/server.ts";
import type { Dependencies } from "../../server/http/dependencies.ts";
import { reportResponses } from "../../server/http/response-report.ts";
import { createServer, type HttpServer, noteRequests } from "../../server/http/server.ts";
import { addWire } from "../../wires/index.ts";
import { enginesOf } from "./backends.ts";
import { backUpData, oneAtATime } from "./backup.ts";
import type { EngineParts } from "./engine.ts";
import { refusedTools, toolTrial } from "./http-tools.ts";
import { responsesIn } from "./metrics.ts";
import type { Nouns } from "./nouns.ts";
import { requireFiles } from "./restore.ts";

export interface ServerParts extends Omit<EngineParts, "tools" | "traces" | "ownAddress"> {
  readonly schemes: readonly OwnScheme[];
  readonly runs: Engine;
  readonly nouns: Nouns;
  readonly dependencies: Dependencies;
  /** Undefined unless users authenticate with API keys. */
  readonly apiKeys: { readonly keys: ApiKeyStore } | undefined;
  /** Finds API keys in a cache. Undefined unless users authenticate with API keys. */
  readonly findKey: ApiKeyStore["find"] | undefined;
  readonly eventLoop: EventLoopWatch | undefined;
}

/** The caller closes the server. */
export async function openServer(config: ServerConfig, parts: ServerParts): Promise<HttpServer> {
  const { own, agents, backends, stores, metrics, quotas, httpTools, webhooks, audit, apiKeys } = parts;
  const { runs, nouns, dependencies, eventLoop, logger } = parts;
  return createServer(
    {
      ...{ stores, runs, backends, agents, quotas, httpTools, webhooks, dependencies, metrics },
      ...nouns.services,
      audit: { ...audit, reads: config.audit.reads, runs: config.audit.runs },
      apiKeys: apiKeys?.keys,
      admin: {
        ...{ runs, quotas, backends },
        owners: stores.owners,
        documents: stores.documents,
        records: [{ type: "webhook", ...webhooks.records }, ...nouns.records],
        keys: apiKeys && userKeys(apiKeys.keys),
        sandboxes: createLedger(stores.documents).list,
        agents: () => agents.list(),
        forgetEngine: (name) => forgetEngine(createLedger(stores.documents), enginesOf(config), name),
        backUp: oneAtATime(() => backUp(config, stores)),
      },
      version: packageJson.version,
      permissionRule: OwnRuleSpec,
      isRefusedTool: refusedTools(config),
      tryTool: toolTrial(config),
      refusesSystemMessages: config.system_messages === "refuse",
      access: accessOf(config, parts),
      limits: limitsOf(config),
      pluginRoutes: own.plugins.flatMap(({ plugin: { name, routes } }) => (routes ? { name, routes } : [])),
      page: config.page,
      wires: config.wires,
    },
    logger,
    {
      addWire,
      extend(each) {
        if (metrics) reportResponses(each, responsesIn(metrics));
        if (eventLoop) noteRequests(each, eventLoop);
      },
    },
  );
}

const accessOf = (config: ServerConfig, { stores, findKey, schemes, credentials }: ServerParts) => ({
  auth: { ticket_secret: stores.shared?.secret, ...config.auth },
  findKey,
  ownScheme: schemes.find(({ name }) => name === config.auth.scheme),
  credentials,
  origins: config.cors.origins,
  publicUrl: config.public_url,
  metricsToken: config.metrics.token,
});

const limitsOf = ({ limits, streams, auth }: ServerConfig) => ({
  bodyBytes: limits.body_bytes,
  incomingBytes: limits.incoming_bytes,
  bodyEntries: limits.body_entries,
  requestMs: limits.request_timeout,
  uploadBytes: limits.upload_bytes,
  streams: limits.streams,
  unreadBytes: limits.unread_bytes,
  connections: {
    total: limits.connections,
    perAddress: limits.connections_per_address,
    isGateway: within(auth.trusted_proxies),
  },
  heartbeatMs: streams.heartbeat,
  stallMs: streams.stall,
});

async function backUp({ store, data_dir }: ServerConfig, { copyTo, documents }: AllStores) {
  requireFiles(store);
  const sandboxes = async () => (await createLedger(documents).list()).map(({ id }) => id);
  return backUpData(data_dir, async (path) => copyTo?.(path), sandboxes);
}

const userKeys = (keys: ApiKeyStore): UserKeys => ({
  of: async ({ tenant, user }) => (await keys.list(tenant)).filter((key) => key.user === user),
  revoke: keys.revoke,
  remove: keys.remove,
});
