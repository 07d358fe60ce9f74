// A program's agents in a server. Each has its own catalogue, because it has its own tools and hooks.

import { buildAgent } from "../../agent/agents/build.ts";
import type { Catalogue } from "../../agent/agents/catalogue.ts";
import { modelChoice, namesOf, requestedModel } from "../../agent/agents/model-choice.ts";
import { changeable, issuesOf, overridden } from "../../agent/agents/overrides.ts";
import { type AgentRegistry, infoOf } from "../../agent/agents/registry.ts";
import { hookChoices, modelChoices } from "../../agent/agents/user-choices.ts";
import { AppError } from "../../agent/core/errors.ts";
import { didYouMean } from "../../lib/did-you-mean.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { LocalAgents } from "./local-agents.ts";

/** Requires at least one agent. `allowModels` contains patterns of models that runs may request. Default: any model. */
export function localRegistry(
  agents: LocalAgents,
  allowModels: readonly string[] | undefined,
): AgentRegistry {
  const all = agents.all();
  const standard = (agents.get("default") ?? all[0])?.name;
  const models = [
    ...new Set(all.flatMap(({ definition, catalogue }) => namesOf(catalogue.createModel(definition.model)))),
  ];
  const choice = allowModels ? { modelChoice: modelChoice(allowModels, () => models) } : {};
  const catalogues = new Map<string, Catalogue>(
    all.map(({ name, catalogue }) => [name, { ...catalogue, ...choice }] as const),
  );

  const known = (name: string) => {
    const agent = agents.get(name);
    const catalogue = catalogues.get(name);
    if (agent && catalogue) {
      const { definition, loop, output } = agent;
      return { definition, loop, output, catalogue };
    }
    throw new AppError("not_found", `There is no agent \`${name}\`${didYouMean(name, catalogues.keys())}`);
  };
  const seen = ({ definition, catalogue }: Pick<ReturnType<typeof known>, "definition" | "catalogue">) => ({
    ...infoOf(definition, catalogue),
    default: definition.name === standard,
  });

  return {
    find(name = standard) {
      const agent = agents.get(name ?? "");
      if (agent) return agent.definition;
      throw new AppError(
        "invalid_request",
        `There is no agent \`${name}\`${didYouMean(name ?? "", catalogues.keys())}`,
      );
    },
    hasModel: (name) => models.includes(name),
    list: () => all.map(({ name }) => seen(known(name))),
    seenWith(name, user) {
      const { definition, catalogue } = known(name);
      const { definition: changed, faults } = overridden(definition, user, catalogue);
      return { agent: seen({ definition: changed, catalogue }), ignored: issuesOf(faults) };
    },
    choices(name, user) {
      const { definition: own, catalogue } = known(name);
      const { definition } = overridden(own, user, catalogue);
      return {
        hooks: hookChoices(definition, catalogue.hooks),
        models: modelChoices(own, catalogue, models),
      };
    },
    changeable: () => changeable([...catalogues.values()].flatMap(({ hooks }) => hooks)),
    isReserved: (name) => agents.isReserved(name),
    mcpServers: () => ({}),
    schedules: () => ({}),
    checkModel(definition, model) {
      requestedModel(model, definition.model, known(definition.name).catalogue);
    },
    async build(definition, services, overrides) {
      const { catalogue, loop, output } = known(definition.name);
      return {
        ...(await buildAgent(definition, catalogue, { ...services, ...overrides })),
        ...omitUndefined({ loop, output }),
      };
    },
    warnings: () =>
      all.flatMap(({ name, definition, catalogue }) => {
        const doubt = catalogue.modelDoubt(definition.model);
        return doubt ? [`agent \`${name}\`: ${doubt}`] : [];
      }),
    files: () => [],
    reload: async () => false,
  };
}
