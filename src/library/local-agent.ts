// An agent as a program describes it: in the words of agents.yaml, with tools, hooks, models and a loop of its own.

import type { z } from "zod";
import type { Catalogue } from "../agents/catalogue.ts";
import type { AgentDefinition, AgentFields, ModelSpec } from "../core/agent.ts";
import type { Backend, BackendConfig } from "../core/backend.ts";
import type { Model, ModelSettings } from "../core/model.ts";
import type { AgentLoop } from "../core/own-loop.ts";
import type { ClientTool } from "../core/records.ts";
import type { Tool } from "../core/tool.ts";
import type { Rule } from "../hooks/permissions/rule.ts";
import type { StartRun } from "../runs/manager.ts";
import type { AgentHandle } from "./handle.ts";
import type { Input } from "./input.ts";
import type { OwnHook } from "./own-hooks.ts";

type Fields = z.input<typeof AgentFields>;

/** What is not said here is as in agents.yaml, defaults included. */
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
  /** Default: `agent`. Agents of one runtime have different ones. */
  readonly name?: string;
  /** `provider:model`, a map, or a model of one's own. Default: whatever the environment has a key for. */
  readonly model?: ModelSpec | Model;
  readonly system_prompt?: string | readonly { readonly id: string; readonly text: string }[];
  /**
   * One's own, and names or globs of those that Skein has: as in agents.yaml, a list that names a built-in tool is exact for
   * the built-in ones. Of several of one name the first.
   */
  readonly tools?: readonly (Tool | string)[];
  /** One's own, in order, first outermost; outside those that Skein has unless they say where they stand. */
  readonly hooks?: readonly OwnHook[];
  /** Those that Skein has, by name: off, on, or on with options. */
  readonly hook_settings?: AgentDefinition["hooks"];
  /** As in agents.yaml: short for the hook. */
  readonly permissions?: Record<string, unknown>;
  /** With conditions of one's own, too; they stand before those of `permissions`, and switch the hook on. */
  readonly permission_rules?: readonly Rule[];
  readonly subagents?: readonly (
    | LocalAgent
    | { readonly agent: LocalAgent; readonly backend?: "shared" | "own" }
  )[];
  /** As in agents.yaml; or one of one's own, which all users of the agent share, and which its maker closes. */
  readonly backend?: BackendConfig | Backend;
  /** In the place of Skein's. */
  readonly loop?: AgentLoop;
  /** Where keys of models are looked for. Default: the process's. */
  readonly env?: NodeJS.ProcessEnv;
}

/** An agent of this program. Never changed: `with` makes another one. */
export interface LocalAgent {
  readonly name: string;
  readonly description?: string;
  readonly definition: AgentDefinition;
  /** What it is made of. */
  readonly catalogue: Catalogue;
  readonly backend?: Backend;
  readonly loop?: AgentLoop;
  /** Those that it may give tasks to. */
  readonly subagents: readonly LocalAgent[];
  /**
   * Runs it in a runtime of its own, with threads in memory: a text, or messages. Throws `invalid_request` for an empty
   * input.
   */
  run(input: Input, options?: Omit<SpawnOptions, "input">): AgentHandle;
  /** The same with other options. Threads in memory are the old one's. */
  with(changes: Partial<AgentOptions>): LocalAgent;
  /** Ends what `run` has begun. */
  close(): Promise<void>;
}

/** Whose a thread is. Default: `default`, as of a server without authentication. */
export interface Whose {
  readonly tenant?: string;
  readonly user?: string;
}

export interface SpawnOptions extends Whose {
  /** What to begin with. Without it nothing is run before `send`. */
  readonly input?: Input;
  /** One's own id, or that of a thread that is there. Default: a new one. */
  readonly thread?: string;
  /** Cancels the run that this begins. */
  readonly signal?: AbortSignal;
  /** `provider:model`, instead of the agent's. */
  readonly model?: string;
  readonly settings?: ModelSettings;
  /** Of the run. */
  readonly metadata?: StartRun["metadata"];
  /** Default: `reject`. */
  readonly on_busy?: StartRun["on_busy"];
  /** Whose calls the program answers itself, with `submitToolResult`. */
  readonly client_tools?: readonly ClientTool[];
}
