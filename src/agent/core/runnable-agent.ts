// An agent ready to run, and the tools it offers.

import type { InterruptPolicy } from "../../protocol/interrupt.ts";
import type { AgentLoop } from "./custom-loop.ts";
import { hookFailed } from "./errors.ts";
import type { Hook } from "./hook.ts";
import type { Model, SystemBlock } from "./model.ts";
import type { OutputFormat } from "./output.ts";
import { type MutableRun, registerTool } from "./run.ts";
import type { Tool } from "./tool.ts";

/** An agent ready to run, made for one run. */
export interface Agent {
  readonly name: string;
  readonly description?: string | undefined;
  readonly model: Model;
  readonly system: readonly SystemBlock[];
  readonly tools: readonly Tool[];
  /** More tools, which may come and go while the run works: asked before each model call. The same list while nothing has changed. */
  currentTools?(): readonly Tool[];
  /** A sentence about a tool that the agent is to have and that is not there now; undefined for others. */
  absence?(tool: string): string | undefined;
  /** Names of tools that its hooks must not give it. */
  readonly without?: ReadonlySet<string>;
  /** In order, first outermost. */
  readonly hooks: readonly Hook[];
  /** Model calls in one run; 0 = no limit. */
  readonly maxIterations: number;
  /** Default: a question stays open until it is answered. */
  readonly interrupts?: InterruptPolicy;
  /** What the final answer of a run must be. Default: any text. */
  readonly output?: OutputFormat;
  /** Replaces the standard loop. */
  readonly loop?: AgentLoop;
}

/** Reports an error of the hook's own under its name. */
export function registerHookTools(hook: Hook, run: MutableRun): void {
  try {
    for (const tool of hook.tools?.(run) ?? []) registerTool(run, tool);
  } catch (error) {
    throw hookFailed(hook.name, error);
  }
}

/** Replaces what `currentTools` gave the last time. Other tools keep their names. */
export function offerCurrentTools({ currentTools }: Agent, run: MutableRun): void {
  const current = currentTools?.() ?? NONE;
  if (current === run.currentTools) return;
  for (const tool of run.currentTools) if (run.tools.get(tool.name) === tool) run.tools.delete(tool.name);
  for (const tool of current) if (!run.tools.has(tool.name)) registerTool(run, tool);
  run.currentTools = current;
}

const NONE: readonly Tool[] = [];

/** Sorted by name, so that requests begin alike and providers can cache them. */
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

/** What a run of this agent offers at its beginning. Nothing is read and nothing started. */
export function toolsOffered(agent: Agent, run: MutableRun): Tool[] {
  for (const tool of agent.tools) if (tool.fault === undefined) registerTool(run, tool);
  for (const hook of agent.hooks) registerHookTools(hook, run);
  offerCurrentTools(agent, run);
  return shownTools(agent, run);
}
