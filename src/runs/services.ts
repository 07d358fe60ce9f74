// What executing runs needs of others.

import type { AgentDefinition } from "../core/agent.ts";
import type { BackendPool } from "../core/backend.ts";
import type { AppError } from "../core/errors.ts";
import type { HookServices } from "../core/hook.ts";
import type { Owner } from "../core/ids.ts";
import type { Interrupt } from "../core/interrupt.ts";
import type { RunRecord } from "../core/records.ts";
import type { Agent } from "../core/runnable-agent.ts";
import type { Stores } from "../core/stores.ts";
import type { Subagents } from "../core/subagents.ts";
import type { Tool } from "../core/tool.ts";
import type { TraceRecorder } from "../core/trace.ts";
import type { Logger } from "../lib/logger.ts";
import type { Quotas } from "../quotas/index.ts";

/** Where runs find their agents. */
export interface AgentSource {
  /** The default agent for no name. Throws `invalid_request` for a name that there is not. */
  find(name: string | undefined): AgentDefinition;
  /** Throws `invalid_request` for a model that a run of this agent may not ask for. */
  checkModel(definition: AgentDefinition, model: string): void;
  /** Whether the server itself has a tool of that name. */
  isReserved(name: string): boolean;
  /** An agent for one run. */
  build(
    definition: AgentDefinition,
    services: Omit<HookServices, "agent" | "createModel"> & { tools?: readonly Tool[] },
    overrides: { model?: string; user?: unknown },
  ): Agent;
}

/** A run that has ended and waits for answers. */
export interface InterruptedRun {
  readonly owner: Owner;
  readonly run: RunRecord;
  readonly interrupts: readonly Interrupt[];
}

export interface DriveServices {
  readonly stores: Stores;
  readonly agents: AgentSource;
  readonly backends: BackendPool;
  readonly logger: Logger;
  readonly recorder?: TraceRecorder;
  readonly subagents?: Subagents;
  /** Without them nothing is limited and nothing counted. */
  readonly quotas?: Quotas;
  /** Told of each run that fails here, before its end is written; returns at once, and throws nothing. */
  onFailed?(run: RunRecord, error: AppError): void;
  /** Told of each run that ends and waits for answers; returns at once, and throws nothing. */
  onInterrupted?(interrupted: InterruptedRun): void;
  /** The tools that an agent has of its user's tenant, besides the server's own. */
  tenantTools?(owner: Owner, agent: string): Promise<readonly Tool[]>;
}

/** How a running run is reached from outside. */
export interface Control {
  readonly signal: AbortSignal;
  /** Aborted when the run goes on elsewhere: then nothing more is written for it here. */
  readonly left: AbortSignal;
  interruptRequested(): boolean;
}
