// Services that the routes use. The composition root creates them; the server adds its streams.

import type { FastifyRequest } from "fastify";
import type { z } from "zod";
import type { AgentRegistry } from "../../agent/agents/registry.ts";
import type { BackendPool } from "../../agent/core/backend.ts";
import type { Content } from "../../agent/core/message.ts";
import type { Stores } from "../../agent/core/stores.ts";
import type { HttpTool } from "../../agent/tools/http/registration.ts";
import type { HttpToolStore } from "../../agent/tools/http/store.ts";
import type { AdminServices } from "../../engine/admin/services.ts";
import type { Quotas } from "../../engine/quotas/index.ts";
import type { Runs } from "../../engine/runs/executor.ts";
import type { Schedules } from "../../engine/schedules/index.ts";
import type { TemporaryThreads } from "../../engine/temporary-threads/index.ts";
import type { Triggers } from "../../engine/triggers/index.ts";
import type { Vault } from "../../engine/vault/index.ts";
import type { OAuth } from "../../engine/vault/oauth/index.ts";
import type { Webhooks } from "../../engine/webhooks/index.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { ApiKeyStore } from "../auth/api-keys.ts";
import type { AuthConfig } from "../auth/config.ts";
import type { Credentials } from "../auth/credential-end.ts";
import type { RequireOperator } from "../auth/operator.ts";
import type { OwnScheme } from "../auth/own-scheme.ts";
import type { WireName } from "../config/wire-names.ts";
import type { AuditTrail } from "./audit-hook.ts";
import type { ConnectionLimits } from "./connections.ts";
import type { Dependencies } from "./dependencies.ts";
import type { NamedRoutes } from "./plugin-routes.ts";
import type { StreamLimits, Streams } from "./sse.ts";
import type { UnreadResponses } from "./unread-responses.ts";

export interface MetricsPage {
  readonly text: MetricsFormat;
  readonly openMetrics: MetricsFormat;
}

interface MetricsFormat {
  readonly contentType: string;
  read(): Promise<string>;
}

export interface HttpServices {
  readonly stores: Stores;
  readonly httpTools: HttpToolStore;
  readonly runs: Runs;
  readonly schedules: Schedules;
  readonly temporaryThreads: TemporaryThreads;
  readonly triggers: Triggers;
  readonly audit: AuditTrail;
  readonly quotas: Quotas;
  readonly webhooks: Webhooks;
  /** Undefined if there is no key. */
  readonly vault?: Vault | undefined;
  /** Undefined if there is no vault. */
  readonly oauth?: OAuth | undefined;
  readonly backends: BackendPool;
  readonly agents: Pick<
    AgentRegistry,
    "find" | "list" | "seenWith" | "choices" | "changeable" | "isReserved" | "checkModel" | "build"
  >;
  /** Returns true if callback tools at this URL are refused because of the current addresses of its host. */
  readonly isRefusedTool: (url: URL) => Promise<boolean>;
  readonly access: {
    readonly auth: AuthConfig;
    /** Required for API keys. Called for every request. */
    readonly findKey?: ApiKeyStore["find"] | undefined;
    /** The plugin's scheme, if the settings select one. */
    readonly ownScheme?: OwnScheme | undefined;
    readonly credentials: Credentials;
    /** The origins whose pages may use this server. */
    readonly origins: readonly string[];
    readonly publicUrl?: string | undefined;
    /** The token that authorizes `GET /metrics` without other credentials. */
    readonly metricsToken?: string | undefined;
  };
  readonly limits: HttpLimits;
  /** Calls a tool once, outside any run. Throws `invalid_request` if the arguments do not match its parameters. */
  tryTool(
    owner: Owner,
    tool: HttpTool,
    args: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<{ readonly output: Content; readonly error?: string; readonly duration_ms: number }>;
  /** True if the server refuses messages with the role `system`. */
  readonly refusesSystemMessages?: boolean;
  readonly dependencies: Dependencies;
  /** The content of `GET /metrics`. If undefined, the route does not exist. */
  readonly metrics?: MetricsPage | undefined;
  /** True if the server serves the page at `/`. */
  readonly page: boolean;
  /** Enabled wires. */
  readonly wires: readonly WireName[];
  /** The schema of a permission rule created by a user. */
  readonly permissionRule: z.ZodType<{ readonly id: string }>;
  /** Undefined if users have no API keys. */
  readonly apiKeys?: ApiKeyStore | undefined;
  /** Services for admins and operators. */
  readonly admin: AdminServices;
  readonly version: string;
  readonly pluginRoutes?: readonly NamedRoutes[];
}

export interface RouteServices extends HttpServices {
  readonly requireOperator: RequireOperator;
  /** Returns true if `requireOperator` would accept the request. */
  isOperator(request: FastifyRequest): Promise<boolean>;
  readonly streams: Streams;
  readonly unreadResponses: UnreadResponses;
}

export interface HttpLimits extends StreamLimits {
  /** Default: no limits. */
  readonly connections?: ConnectionLimits;
  /** The maximum number of bytes in a JSON body. */
  readonly bodyBytes: number;
  /** The maximum number of bytes in all JSON bodies that are received or handled at the same time. */
  readonly incomingBytes: number;
  /** The maximum number of keys and values in a JSON body. */
  readonly bodyEntries: number;
  /** The maximum time for a request body to arrive, and the maximum pause in an upload, in ms. */
  readonly requestMs: number;
  /** The maximum number of bytes that wait for clients to read them, in all responses together. */
  readonly unreadBytes: number;
  /** The maximum number of bytes in an uploaded file. */
  readonly uploadBytes: number;
}
