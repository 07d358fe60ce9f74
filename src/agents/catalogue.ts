// The parts that agents are made of. The composition root provides them.

import type { z } from "zod";
import type { ModelSpec } from "../core/agent.ts";
import type { HookDefinition } from "../core/hook.ts";
import type { Model } from "../core/model.ts";
import type { Tool } from "../core/tool.ts";

/** The models that runs and overrides may name. */
export interface ModelChoice {
  /** `name` is `provider:model`. */
  allows(name: string): boolean;
  /** The allowed names and patterns, for messages. */
  list(): readonly string[];
}

export interface Catalogue {
  /** In the order in which they wrap an agent, first outermost. */
  readonly hooks: readonly HookDefinition[];
  /** The server's current tools; tenants may have more. */
  tools(): readonly Tool[];
  /** `mcp_servers`, by name. */
  readonly mcpServers: z.ZodType;
  /** A backend as configured; its value is a `BackendConfig`. */
  readonly backends: z.ZodType;
  /** Opens no connection. Throws an `AppError` for a spec that no provider takes. */
  createModel(spec: ModelSpec): Model;
  /** Whether a run may ask for this model besides its agent's own. Absent: every model. */
  readonly modelChoice?: ModelChoice;
  /** The environment variable that the model's provider needs and that is not set, if any. */
  missingKey(spec: ModelSpec): string | undefined;
}
