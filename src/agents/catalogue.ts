// What an agent can be made of. The composition root hands in the real rooms; nothing in here knows them.

import type { z } from "zod";
import type { ModelSpec } from "../core/agent.ts";
import type { HookDefinition } from "../core/hook.ts";
import type { Model } from "../core/model.ts";
import type { Tool } from "../core/tool.ts";

export interface Catalogue {
  /** In the order in which they wrap an agent, first outermost. */
  readonly hooks: readonly HookDefinition[];
  /** The tools that the server itself has, as they are now; a tenant may have more. */
  tools(): readonly Tool[];
  /** `mcp_servers`, by name. */
  readonly mcpServers: z.ZodType;
  /** A backend as configured; its value is a `BackendConfig`. */
  readonly backends: z.ZodType;
  /** Connects to nobody. Throws an `AppError` for a spec that no provider takes. */
  createModel(spec: ModelSpec): Model;
  /** The environment variable that the model's provider will miss, if there is one. */
  missingKey(spec: ModelSpec): string | undefined;
}
