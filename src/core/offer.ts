// The tools of an agent: registered for a run, and shown to the model.

import { hookFailed } from "./errors.ts";
import type { Hook } from "./hook.ts";
import { type LiveRun, registerTool } from "./run.ts";
import type { Agent } from "./runnable-agent.ts";
import type { Tool } from "./tool.ts";

export function registerHookTools(hook: Hook, run: LiveRun): void {
  for (const tool of hook.tools?.(run) ?? []) registerTool(run, tool);
}

/** Sorted by name, so that requests begin alike and providers can cache them. */
export function shownTools({ hooks }: Agent, run: LiveRun): Tool[] {
  return [...run.tools.values()]
    .filter((tool) => !hooks.some((hook) => hides(hook, tool, run)))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function hides(hook: Hook, tool: Tool, run: LiveRun): boolean {
  try {
    return hook.hides?.(tool, run) ?? false;
  } catch (error) {
    throw hookFailed(hook.name, error);
  }
}

/** What a run of this agent offers at its beginning. Nothing is read and nothing started. */
export function toolsOffered(agent: Agent, run: LiveRun): Tool[] {
  for (const tool of agent.tools) registerTool(run, tool);
  for (const hook of agent.hooks) registerHookTools(hook, run);
  return shownTools(agent, run);
}
