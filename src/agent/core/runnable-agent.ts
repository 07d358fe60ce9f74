// An agent ready to run, and the tools it offers.

import type { InterruptPolicy } from "../../protocol/interrupt.ts";
import type { AgentLoop } from "./custom-loop.ts";
import { hookFailed } from "./errors.ts";
import type { Hook } from "./hook.ts";
import type { Model, SystemBlock } from "./model.ts";
import type { OutputFormat } from "./output.ts";
import { type MutableRun, registerTool } from "./run.ts";
import type { Tool } from "./tool.ts";

/** An agent that is ready to run, created for a single run. */
export interface Agent {
  readonly name: string;
  readonly description?: string | undefined;
  readonly model: Model;
  readonly system: readonly SystemBlock[];
  readonly tools: readonly Tool[];
  /**
   * Returns additional tools, which may appear and disappear during the run. Called before each model call.
   * Must return the same list until something changes.
   */
  currentTools?(): readonly Tool[];
  /**
   * Returns a sentence about a configured tool that is currently unavailable, or undefined for any other
   * name.
   */
  absence?(tool: string): string | undefined;
  /** The names of tools that the agent's hooks must not register. */
  readonly without?: ReadonlySet<string>;
  /** The hooks in order. The first hook is the outermost. */
  readonly hooks: readonly Hook[];
  /** The maximum number of model calls in one run. 0 means no limit. */
  readonly maxIterations: number;
  /** Default: a question stays open until it is answered. */
  readonly interrupts?: InterruptPolicy;
  /** The required format of a run's final answer. Default: any text. */
  readonly output?: OutputFormat;
  /** Replaces the standard loop. */
  readonly loop?: AgentLoop;
}

/** Registers the hook's tools. Attributes an error of the hook to its name. */
export function registerHookTools(hook: Hook, run: MutableRun): void {
  try {
    for (const tool of hook.tools?.(run) ?? []) registerTool(run, tool);
  } catch (error) {
    throw hookFailed(hook.name, error);
  }
}

/** Replaces the tools that `currentTools` returned before. Other tools keep their names. */
export function offerCurrentTools({ currentTools }: Agent, run: MutableRun): void {
  const current = currentTools?.() ?? NONE;
  if (current === run.currentTools) return;
  for (const tool of run.currentTools) if (run.tools.get(tool.name) === tool) run.tools.delete(tool.name);
  for (const tool of current) if (!run.tools.has(tool.name)) registerTool(run, tool);
  run.currentTools = current;
}

const NONE: readonly Tool[] = [];

/**
 * Returns the tools to show to the model, sorted by name so requests share a prefix that providers can cache.
 */
export function shownTools({ hooks }: Agent, run: MutableRun): Tool[] {
  return [...run.tools.values()]
    .filter((tool) => !hooks.some((hook) => hides(hook, tool, run)))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function hides(hook: Hook, tool: Tool, run: MutableRun): boolean {
  try {
    return hook.hides?.(tool, run) ?? false;
  } catch (error) {
    throw hookFailed(hook.name, error);
  }
}

/** Returns the tools that a run of this agent offers at its start. Performs no I/O and starts nothing. */
export function toolsOffered(agent: Agent, run: MutableRun): Tool[] {
  for (const tool of agent.tools) if (tool.fault === undefined) registerTool(run, tool);
  for (const hook of agent.hooks) registerHookTools(hook, run);
  offerCurrentTools(agent, run);
  return shownTools(agent, run);
}
