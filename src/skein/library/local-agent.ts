// An agent as described by a program: the keys of agents.yaml, plus the program's own tools, hooks, models and loop.

import type { z } from "zod";
import type { Catalogue } from "../../agent/agents/catalogue.ts";
import type { AgentDefinition, AgentFields, ModelSpec } from "../../agent/core/agent.ts";
import type { Backend, BackendConfig } from "../../agent/core/backend.ts";
import type { AgentLoop } from "../../agent/core/custom-loop.ts";
import type { Hook, HookDefinition, HookServices } from "../../agent/core/hook.ts";
import type { PlacedHook } from "../../agent/core/hook-order.ts";
import type { Model, ModelSettings } from "../../agent/core/model.ts";
import type { OutputFormat } from "../../agent/core/output.ts";
import type { ClientTool } from "../../agent/core/records.ts";
import type { Tool } from "../../agent/core/tool.ts";
import type { Rule } from "../../agent/hooks/permissions/rule.ts";
import type { RunCommand } from "../../engine/runs/start.ts";
import type { JsonSchema } from "../../lib/untrusted-schema/index.ts";
import type { AgentHandle } from "./handle.ts";
import type { Input } from "./input.ts";

type Fields = z.input<typeof AgentFields>;

/** The options of an agent. Fields and defaults are the same as in agents.yaml unless described here. */
export interface AgentOptions
  extends Pick<
    Fields,
    | "description"
    | "skills"
    | "memory"
    | "context_window"
    | "max_iterations"
    | "max_delegation_depth"
    | "interrupts"
  > {
  /** The name of the agent, which must be unique within a runtime. Default: `agent`. */
  readonly name?: string;
  /**
   * `provider:model`, a map, or a custom model under any name. Default: the model of the provider whose API key is in
   * the environment.
   */
  readonly model?: ModelSpec | Model;
  readonly system_prompt?: string | readonly { readonly id: string; readonly text: string }[];
  /**
   * Custom tools, and names or globs of Skein's tools. As in agents.yaml, a list that names a built-in tool excludes
   * the other built-in tools. If several tools have the same name, the first one is used.
   */
  readonly tools?: readonly (Tool | string)[];
  /** Custom hooks, outermost first. They surround Skein's hooks unless `before` or `after` places them. */
  readonly hooks?: readonly OwnHook[];
  /** The settings of Skein's hooks by name: off, on, or options. */
  readonly hook_settings?: AgentDefinition["hooks"];
  /** The options of the `permissions` hook. */
  readonly permissions?: Record<string, unknown>;
  /** Permission rules, which may have custom conditions. They precede the rules of `permissions` and enable the hook. */
  readonly permission_rules?: readonly Rule[];
  readonly subagents?: readonly (
    | LocalAgent
    | { readonly agent: LocalAgent; readonly backend?: "shared" | "own" }
  )[];
  /** Same as in agents.yaml, or a `Backend` that all users of the agent share and that the caller closes. */
  readonly backend?: BackendConfig | Backend;
  /**
   * The schema of each run's final answer: a JSON Schema of an object, or a Zod schema, which also types
   * `result.output`.
   */
  readonly output_schema?: z.ZodType | JsonSchema;
  /** Replaces Skein's loop. */
  readonly loop?: AgentLoop;
  /** The variables that contain the API keys of models. Default: `process.env`. */
  readonly env?: NodeJS.ProcessEnv;
}

/** The output of a Zod schema. It is checked with the schema's refinements and read with its defaults and transforms. */
export interface TypedOutput extends OutputFormat {
  /** Returns the output for a value that has passed `check`. */
  parse(value: unknown): unknown;
}

/** An immutable agent. `with` returns another one. */
export interface LocalAgent<Output = unknown> {
  readonly name: string;
  readonly description?: string;
  readonly definition: AgentDefinition;
  readonly catalogue: Catalogue;
  readonly backend?: Backend;
  readonly loop?: AgentLoop;
  /** The output of an agent whose `output_schema` is a Zod schema. */
  readonly output?: TypedOutput;
  /** The agents that it may delegate to. */
  readonly subagents: readonly LocalAgent[];
  /** Runs the agent in a private runtime with threads in memory. Throws `invalid_request` for an empty input. */
  run(input: Input, options?: Omit<SpawnOptions, "input">): AgentHandle<Output>;
  /** Returns a copy with other options. Threads in memory remain with the original agent. */
  with(changes: Partial<Omit<AgentOptions, "output_schema">>): LocalAgent<Output>;
  with<S extends z.ZodType>(
    changes: Partial<AgentOptions> & { readonly output_schema: S },
  ): LocalAgent<z.output<S>>;
  with(changes: Partial<AgentOptions>): LocalAgent;
  /** Ends all runs that `run` started. */
  close(): Promise<void>;
}

/** The owner of a thread. Both fields default to `default`, as on a server without authentication. */
export interface Whose {
  readonly tenant?: string;
  readonly user?: string;
}

export interface SpawnOptions extends Whose {
  /** The input of the first run. If it is not set, the first run starts with `send`. */
  readonly input?: Input;
  /** The id of a new or existing thread. Default: a new id. */
  readonly thread?: string;
  /** Cancels the run that this call starts. */
  readonly signal?: AbortSignal;
  /** `provider:model`, which replaces the agent's model for this run. */
  readonly model?: string;
  readonly settings?: ModelSettings;
  /** A JSON Schema of an object, which replaces the agent's output schema for this run. */
  readonly output_schema?: Record<string, unknown>;
  /** The metadata of the run. */
  readonly metadata?: RunCommand["metadata"];
  /** The action to take if the thread has an active run. Default: `reject`. */
  readonly on_busy?: RunCommand["on_busy"];
  /** The tools whose calls the program answers with `submitToolResult`. */
  readonly client_tools?: readonly ClientTool[];
}

/** Creates a hook. Called once per run, so a closure contains the state of that run only. */
export type HookFactory = (services: HookServices) => Hook;

/** A hook or its factory. `before` and `after` place it directly outside or inside the named hook. */
export type OwnHook = PlacedHook<HookFactory | HookDefinition>;
