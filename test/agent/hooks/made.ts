// A hook as an agent's configuration makes it.

import type { AgentDefinition } from "../../../src/agent/core/agent.ts";
import type { Hook, HookDefinition, HookServices } from "../../../src/agent/core/hook.ts";
import { scriptedModel } from "../../../src/agent/models/scripted.ts";

interface Settings extends Partial<Omit<HookServices, "agent">> {
  agent?: Partial<AgentDefinition>;
  options?: Record<string, unknown>;
}

export function made(definition: HookDefinition, { agent, options = {}, ...services }: Settings = {}): Hook {
  const createModel = () => scriptedModel([]);
  return definition.create(definition.options.parse(options), {
    ...{ agent: agentWith(agent), createModel },
    ...services,
  });
}

export function agentWith(fields: Partial<AgentDefinition> = {}): AgentDefinition {
  return {
    name: "test",
    model: "scripted:test",
    system: [],
    hooks: {},
    context_window: 128_000,
    max_iterations: 25,
    tools: [],
    subagents: [],
    max_delegation_depth: 3,
    ...fields,
  };
}
