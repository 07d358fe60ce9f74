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

/** A catalogue with own code from an agents file. */
export interface Extended {
  /** The same object as the last time where nothing has changed. */
  readonly catalogue: Catalogue;
  /** By the entry of the list. */
  readonly faults: readonly { readonly index: number; readonly message: string }[];
  /** All files that the own code is made of. */
  readonly files: readonly string[];
}

/** Adds the plugins that an agents file names to the catalogue, read again where they have changed. Never throws. */
export type Extend = (modules: readonly string[], agentsFile: string) => Promise<Extended>;

export interface Catalogue {
  /** In the order in which they wrap an agent, first outermost. */
  readonly hooks: readonly HookDefinition[];
  /** The server's current tools; tenants may have more. */
  tools(): readonly Tool[];
  /** The tools that MCP servers have listed. They come and go while a run works; the same list while nothing has changed. */
  serverTools?(): readonly Tool[];
  /** Resolves when these MCP servers have listed their tools for the first time, or failed to. Never rejects. */
  serversListed?(names: readonly string[]): Promise<void>;
  /** The MCP servers whose tools are missing or cannot be called now; `why` completes "The server …". Default: none. */
  absentServers?(): readonly { readonly server: string; readonly why: string }[];
  /** `mcp_servers`, by name. */
  readonly mcpServers: z.ZodType;
  /** A backend as configured; its value is a `BackendConfig`. */
  readonly backends: z.ZodType;
  /** Opens no connection. Throws an `AppError` for a spec that no provider takes. */
  createModel(spec: ModelSpec): Model;
  /** Names that the file gives to models. Default: none. */
  readonly aliases?: readonly string[];
  /** Whether a run may ask for this model besides its agent's own. Absent: every model. */
  readonly modelChoice?: ModelChoice;
  /** Why calls to the model, or to one of its fallbacks, will fail as things are: a clause; undefined if no reason is known. */
  modelDoubt(spec: ModelSpec): string | undefined;
}
