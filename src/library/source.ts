// The agents of a program, as runs find them.

import { buildAgent } from "../agents/build.ts";
import { requestedModel } from "../agents/model-choice.ts";
import { reservedNames } from "../agents/tool-choice.ts";
import { AppError } from "../core/errors.ts";
import { didYouMean } from "../lib/did-you-mean.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";
import type { AgentSource } from "../runs/services.ts";
import type { LocalAgent } from "./local-agent.ts";

export interface LocalAgents extends AgentSource {
  /** With its subagents. Throws `config_invalid` for another agent of a name that is there. */
  add(agent: LocalAgent): void;
  /** Runs that begin from now on take this one. */
  replace(agent: LocalAgent): void;
  get(name: string): LocalAgent | undefined;
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
        `There is another agent \`${agent.name}\` in this runtime. Give this one another name, or replace that one.`,
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
    find(name) {
      const [first] = agents.keys();
      if (name === undefined && first === undefined)
        throw new AppError("invalid_request", "There is no agent in this runtime yet.");
      return named(name ?? first ?? "").definition;
    },
    checkModel(definition, model) {
      requestedModel(model, definition.model, named(definition.name).catalogue);
    },
    isReserved: (name) => agents.values().some(({ catalogue }) => reservedNames(catalogue).has(name)),
    build(definition, services, overrides) {
      const { catalogue, loop } = named(definition.name);
      return {
        ...buildAgent(definition, catalogue, { ...services, ...overrides }),
        ...omitUndefined({ loop }),
      };
    },
  };
}
