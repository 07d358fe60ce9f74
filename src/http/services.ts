// What the routes are given. The composition root builds it, but for what the server itself adds.

import type { z } from "zod";
import type { Misfit } from "../agents/overrides.ts";
import type { AgentInfo } from "../agents/registry.ts";
import type { AgentDefinition } from "../core/agent.ts";
import type { BackendPool } from "../core/backend.ts";
import type { UserMay } from "../core/hook.ts";
import type { Stores } from "../core/stores.ts";
import type { Quotas } from "../quotas/index.ts";
import type { RunManager } from "../runs/manager.ts";
import type { AgentSource } from "../runs/services.ts";
import type { HttpToolStore } from "../tools/http/registration.ts";
import type { ApiKeyStore } from "./auth/api-keys.ts";
import type { AuthConfig } from "./auth/config.ts";
import type { StreamLimits, Streams } from "./sse.ts";

export interface HttpServices {
  readonly stores: Stores;
  readonly httpTools: HttpToolStore;
  readonly runs: RunManager;
  readonly quotas: Quotas;
  readonly backends: BackendPool;
  readonly agents: {
    /** The default one for no name. Throws `invalid_request`. */
    find(name: string | undefined): AgentDefinition;
    list(): readonly AgentInfo[];
    /** An agent as a user sees it who has changed this of it, and what of that does not fit. Throws `not_found`. */
    seenWith(name: string, user: unknown): { readonly agent: AgentInfo; readonly ignored: readonly Misfit[] };
    /** The hooks that users may change. */
    changeable(): Readonly<Record<string, UserMay>>;
    /** Whether the server itself has a tool of that name. */
    isReserved(name: string): boolean;
    readonly build: AgentSource["build"];
  };
  /** Whether no callback tool at this URL is called, because of the addresses that its host has now. */
  readonly isRefusedTool: (url: URL) => Promise<boolean>;
  readonly access: {
    readonly auth: AuthConfig;
    readonly apiKeys?: ApiKeyStore | undefined;
    /** The sites whose pages may use this server. */
    readonly origins: readonly string[];
  };
  readonly limits: HttpLimits;
  /** What a rule must look like that a person makes. */
  readonly permissionRule: z.ZodType<{ readonly id: string }>;
  readonly version: string;
}

/** What the server adds for its routes. */
export interface RouteServices extends HttpServices {
  readonly streams: Streams;
}

export interface HttpLimits extends StreamLimits {
  /** Bytes of a JSON body. */
  readonly bodyBytes: number;
  /** Bytes of a file that is sent. */
  readonly uploadBytes: number;
}
