// The parts from which agents are built. The composition root provides them.

import type { z } from "zod";
import type { ModelSpec } from "../core/agent.ts";
import type { HookDefinition } from "../core/hook.ts";
import type { Model } from "../core/model.ts";
import type { Tool } from "../core/tool.ts";

/** The models that runs and overrides may name. */
export interface ModelChoice {
  /** `name` is `provider:model`. */
  allows(name: string): boolean;
  /** Returns the allowed names and patterns, to show them in messages. */
  list(): readonly string[];
}

/** A catalogue with parts from the plugins of an agents file. */
export interface ExtendedCatalogue {
  /** The same object as before if nothing has changed. */
  readonly catalogue: Catalogue;
  /** The faults of the plugins, each with the plugin's index in the list. */
  readonly faults: readonly { readonly index: number; readonly message: string }[];
  /** All source files of the plugins. */
  readonly files: readonly string[];
}

/**
 * Adds the plugins named in an agents file to the catalogue, and reads them again if they have changed. Never
 * throws.
 */
export type Extend = (modules: readonly string[], agentsFile: string) => Promise<ExtendedCatalogue>;

export interface Catalogue {
  /** The hooks in the order in which they wrap an agent. The first hook is the outermost. */
  readonly hooks: readonly HookDefinition[];
  /** Returns the server's current tools. Tenants may have additional tools. */
  tools(): readonly Tool[];
  /**
   * Returns the tools that MCP servers have listed, which may change during a run. Returns the same list
   * until something changes.
   */
  serverTools?(): readonly Tool[];
  /**
   * Resolves when these MCP servers have listed their tools for the first time, or failed to do so. Never
   * rejects.
   */
  serversListed?(names: readonly string[]): Promise<void>;
  /**
   * Returns the MCP servers whose tools are missing or currently unavailable. `why` completes "The server …".
   * Default: none.
   */
  absentServers?(): readonly { readonly server: string; readonly why: string }[];
  /** Returns the names of the MCP servers that each owner connects to with their own account. Default: none. */
  accountServers?(): readonly string[];
  /** The schema of `mcp_servers`, which maps names to servers. */
  readonly mcpServers: z.ZodType;
  /** The schema of `schedules`, which maps names to schedules. Default: the file may not contain schedules. */
  readonly schedules?: z.ZodType;
  /** The schema of a configured backend. Its value is a `BackendConfig`. */
  readonly backends: z.ZodType;
  /** Creates a model without opening a connection. Throws an `AppError` if no provider accepts the spec. */
  createModel(spec: ModelSpec): Model;
  /** The model aliases in the file. Default: none. */
  readonly aliases?: readonly string[];
  /**
   * The models that a run can request in addition to the models of its agent. If undefined, a run can request
   * any model.
   */
  readonly modelChoice?: ModelChoice;
  /**
   * Returns a clause that explains why calls to the model, or to one of its fallbacks, would currently fail.
   * Returns undefined if no reason is known.
   */
  modelDoubt(spec: ModelSpec): string | undefined;
}
