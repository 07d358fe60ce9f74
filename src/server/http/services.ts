// What the routes work on. The composition root builds it; the server adds its streams.

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
import type { Owner } from "../../protocol/ids.ts";
import type { ApiKeyStore } from "../auth/api-keys.ts";
import type { AuthConfig } from "../auth/config.ts";
import type { Credentials } from "../auth/credential-end.ts";
import type { RequireOperator } from "../auth/operator.ts";
import type { OwnScheme } from "../auth/own-scheme.ts";
import type { WireName } from "../config/wire-names.ts";
import type { ConnectionLimits } from "./connections.ts";
import type { Dependencies } from "./dependencies.ts";
import type { NamedRoutes } from "./plugin-routes.ts";
import type { StreamLimits, Streams } from "./sse.ts";
import type { UnreadAnswers } from "./unread-answers.ts";

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
  readonly quotas: Quotas;
  readonly backends: BackendPool;
  readonly agents: Pick<
    AgentRegistry,
    "find" | "list" | "seenWith" | "choices" | "changeable" | "isReserved" | "checkModel" | "build"
  >;
  /** Whether callback tools at this URL are refused, because of the addresses that its host has now. */
  readonly isRefusedTool: (url: URL) => Promise<boolean>;
  readonly access: {
    readonly auth: AuthConfig;
    /** Needed for API keys; asked for every request. */
    readonly findKey?: ApiKeyStore["find"] | undefined;
    /** A plugin's scheme, if the settings choose it. */
    readonly ownScheme?: OwnScheme | undefined;
    readonly credentials: Credentials;
    /** Origins whose pages may use this server. */
    readonly origins: readonly string[];
    readonly publicUrl?: string | undefined;
    /** Lets `GET /metrics` be read without other credentials. */
    readonly metricsToken?: string | undefined;
  };
  readonly limits: HttpLimits;
  /** Calls a tool once, outside of any run. Throws `invalid_request` for arguments that do not fit its parameters. */
  tryTool(
    owner: Owner,
    tool: HttpTool,
    args: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<{ readonly output: Content; readonly error?: string; readonly duration_ms: number }>;
  /** Whether messages of the role `system` are refused. */
  readonly refusesSystemMessages?: boolean;
  readonly dependencies: Dependencies;
  /** Present: `GET /metrics` answers with it. */
  readonly metrics?: MetricsPage | undefined;
  /** Whether the page is served at `/`. */
  readonly page: boolean;
  /** The wires that are on. */
  readonly wires: readonly WireName[];
  /** The schema of a permission rule made by a user. */
  readonly permissionRule: z.ZodType<{ readonly id: string }>;
  /** Absent where users have no API keys. */
  readonly apiKeys?: ApiKeyStore | undefined;
  /** What admins and operators work with. */
  readonly admin: AdminServices;
  readonly version: string;
  readonly pluginRoutes?: readonly NamedRoutes[];
}

export interface RouteServices extends HttpServices {
  readonly requireOperator: RequireOperator;
  /** Whether `requireOperator` would let the request pass. */
  isOperator(request: FastifyRequest): Promise<boolean>;
  readonly streams: Streams;
  readonly unreadAnswers: UnreadAnswers;
}

export interface HttpLimits extends StreamLimits {
  /** Default: none. */
  readonly connections?: ConnectionLimits;
  /** Bytes of a JSON body. */
  readonly bodyBytes: number;
  /** Bytes of JSON bodies that may be on their way, or worked on, together. */
  readonly incomingBytes: number;
  /** Keys and values of a JSON body. */
  readonly bodyEntries: number;
  /** How long the body of a request may take to arrive, and an upload may send nothing, in ms. */
  readonly requestMs: number;
  /** Bytes that may wait for clients to read them, of all answers together. */
  readonly unreadBytes: number;
  /** Bytes of an uploaded file. */
  readonly uploadBytes: number;
}
