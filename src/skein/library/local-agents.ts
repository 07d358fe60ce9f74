// A program's agents by name, for the engine.

import { buildAgent } from "../../agent/agents/build.ts";
import { requestedModel } from "../../agent/agents/model-choice.ts";
import { isReserved } from "../../agent/agents/tool-choice.ts";
import { AppError } from "../../agent/core/errors.ts";
import type { Agents } from "../../engine/runs/services.ts";
import { didYouMean } from "../../lib/did-you-mean.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { LocalAgent } from "./local-agent.ts";

export interface LocalAgents extends Agents {
  /** Adds an agent and its subagents. Throws `config_invalid` if another agent has the same name. */
  add(agent: LocalAgent): void;
  replace(agent: LocalAgent): void;
  get(name: string): LocalAgent | undefined;
  /** Returns all agents in the order in which they were added. */
  all(): readonly LocalAgent[];
}

export function localAgents(): LocalAgents {
  const agents = new Map<string, LocalAgent>();

  const named = (name: string): LocalAgent => {
    const agent = agents.get(name);
    if (agent) return agent;
    const message = `There is no agent \`${name}\` in this runtime${didYouMean(name, agents.keys())}`;
    throw new AppError("invalid_request", message);
  };

  const add = (agent: LocalAgent): void => {
    const known = agents.get(agent.name);
    if (known === agent) return;
    if (known)
      throw new AppError(
        "config_invalid",
        `This runtime already has another agent \`${agent.name}\`. Rename this one, or call \`replace\`.`,
      );
    agents.set(agent.name, agent);
    for (const subagent of agent.subagents) add(subagent);
  };

  return {
    add,
    replace(agent) {
      agents.set(agent.name, agent);
      for (const subagent of agent.subagents) if (!agents.has(subagent.name)) add(subagent);
    },
    get: (name) => agents.get(name),
    all: () => [...agents.values()],
    find(name) {
      const [first] = agents.keys();
      if (name === undefined && first === undefined)
        throw new AppError("invalid_request", "This runtime has no agents yet.");
      return named(name ?? first ?? "").definition;
    },
    checkModel(definition, model) {
      requestedModel(model, definition.model, named(definition.name).catalogue);
    },
    isReserved: (name) => agents.values().some(({ catalogue }) => isReserved(name, catalogue)),
    async build(definition, services, overrides) {
      const { catalogue, loop, output } = named(definition.name);
      return {
        ...(await buildAgent(definition, catalogue, { ...services, ...overrides })),
        ...omitUndefined({ loop, output }),
      };
    },
  };
}
