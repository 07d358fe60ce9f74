// Creates the engine that executes runs, from the services that it needs.

import type { FastifyBaseLogger } from "fastify";
import type { AgentRegistry } from "../../agent/agents/registry.ts";
import type { BackendPool } from "../../agent/core/backend.ts";
import { hasCode } from "../../agent/core/errors.ts";
import { maskedCalls } from "../../agent/tools/http/deferral.ts";
import type { HttpToolStore } from "../../agent/tools/http/store.ts";
import type { McpServers } from "../../agent/tools/mcp/servers.ts";
import type { Audit } from "../../engine/audit/index.ts";
import type { Quotas } from "../../engine/quotas/index.ts";
import { createDeliveries } from "../../engine/runs/deliveries.ts";
import { createEngine, type Engine } from "../../engine/runs/index.ts";
import { logRecorder } from "../../engine/runs/logging.ts";
import { allRecorders } from "../../engine/runs/recorders.ts";
import { createSentRequests } from "../../engine/runs/sent-requests.ts";
import type { StartingKeys } from "../../engine/runs/services.ts";
import type { AllStores } from "../../engine/stores/all-stores.ts";
import type { Webhooks } from "../../engine/webhooks/index.ts";
import type { Credentials } from "../../server/auth/credential-end.ts";
import type { ServerConfig } from "../../server/config/server.ts";
import type { Metrics } from "../../server/telemetry/metrics.ts";
import type { Traces } from "../../server/telemetry/traces.ts";
import { bothTools, ownersTools, tenantTools } from "./http-tools.ts";
import { answersTo } from "./nouns.ts";
import { restorationOf } from "./restore.ts";
import type { ServerPlugins } from "./server-plugins.ts";

export interface EngineParts {
  readonly own: ServerPlugins;
  readonly agents: AgentRegistry;
  readonly tools: McpServers;
  readonly backends: BackendPool;
  readonly stores: AllStores;
  readonly quotas: Quotas;
  readonly httpTools: HttpToolStore;
  readonly webhooks: Webhooks;
  readonly audit: Audit;
  readonly credentials: Credentials;
  readonly metrics: Metrics | undefined;
  readonly traces: Traces | undefined;
  readonly logger: FastifyBaseLogger;
  /** Returns the address at which the server listens, or undefined until it listens. */
  ownAddress(): string | undefined;
}

/** The caller closes the engine. */
export async function openEngine(config: ServerConfig, parts: EngineParts): Promise<Engine> {
  const { own, agents, tools, backends, stores, quotas, httpTools, webhooks } = parts;
  const { metrics, traces, audit, credentials, logger, ownAddress } = parts;
  const ofLog = logger.level === "debug" || logger.level === "trace" ? [logRecorder(logger)] : [];
  const ofPlugins = own.plugins.flatMap(({ plugin }) => plugin.recorder ?? []);
  return createEngine({
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
    tenantTools: bothTools(tenantTools(config, httpTools, stores, ownAddress), ownersTools(agents, tools)),
    deliveries: createDeliveries(stores.documents, logger),
    restoration: config.store === "sqlite" ? await restorationOf(config.data_dir) : undefined,
    sentRequests: config.traces.requests ? createSentRequests(stores.documents) : undefined,
    startingKeys: config.auth.on_revoked === "cancel" ? startingKeys(credentials) : undefined,
    listeners: [metrics, traces].flatMap((each) => (each ? [each.follow] : [])),
    traces,
    onDelivered: (outcome) => metrics?.deferredResults.inc({ outcome }),
    recorder: allRecorders([...ofLog, ...ofPlugins], logger),
    tasks: own.plugins.find(({ plugin }) => plugin.tasks)?.plugin.tasks,
    beforeEnd: webhooks.beforeEnd,
    onAnswered: answersTo(audit),
  });
}

/** Reports the end of a key only if it was revoked; its runs continue after it expires. */
function startingKeys(credentials: Credentials): StartingKeys {
  return {
    isRevoked: async (api_key) => hasCode(await credentials.endOfKey(api_key), "credentials_revoked"),
    watch: (api_key, onRevoked) =>
      credentials.watch({ api_key }, (reason) => {
        if (hasCode(reason, "credentials_revoked")) onRevoked();
      }),
  };
}
