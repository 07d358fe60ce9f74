// From a definition to an agent ready to run: its tools, its hooks made anew, its model.

import type { Agent, AgentDefinition, ModelSpec } from "../core/agent.ts";
import type { Backend } from "../core/backend.ts";
import type { HookDefinition } from "../core/hook.ts";
import type { Model } from "../core/model.ts";
import type { Quotas } from "../core/quotas.ts";
import type { Tool } from "../core/tool.ts";
import type { TraceRecorder } from "../core/trace.ts";
import type { Catalogue } from "./catalogue.ts";
import { requestedModel } from "./model-choice.ts";
import { chosenTools } from "./tool-choice.ts";

export interface BuildOptions {
  readonly backend?: Backend;
  readonly recorder?: TraceRecorder;
  readonly quotas?: Quotas;
  /** Those of the tenant, for `tools:` to choose from as well. */
  readonly tools?: readonly Tool[];
  /** `provider:model`, instead of the definition's. */
  readonly model?: string;
}

/** For one run. Throws `invalid_request` for a model that there is not. */
export function buildAgent(definition: AgentDefinition, catalogue: Catalogue, options: BuildOptions): Agent {
  const { model, tools = [], ...given } = options;
  const services = { agent: definition, createModel: catalogue.createModel, ...given };
  const taken = reservedNames(catalogue);
  const spec = model === undefined ? definition.model : requestedModel(model, definition.model, catalogue);
  return {
    name: definition.name,
    model: catalogue.createModel(spec),
    system: definition.system,
    tools: chosenTools(definition.tools, [
      ...catalogue.tools(),
      ...tools.filter((tool) => !taken.has(tool.name)),
    ]),
    hooks: activeHooks(definition, catalogue.hooks).map((hook) =>
      hook.create(hook.options.parse(optionsOf(definition, hook)), services),
    ),
    maxIterations: definition.max_iterations,
  };
}

/** The names of the server's own tools and of those that hooks bring: a tenant's tool cannot take their place. */
export function reservedNames({ tools, hooks }: Catalogue): ReadonlySet<string> {
  return new Set([...tools().map(({ name }) => name), ...hooks.flatMap((hook) => hook.tools ?? [])]);
}

/** In the catalogue's order, whatever the order in the YAML. */
export function activeHooks(definition: AgentDefinition, hooks: readonly HookDefinition[]): HookDefinition[] {
  return hooks.filter((hook) => definition.hooks[hook.name] ?? hook.activeByDefault(definition));
}

function optionsOf({ hooks }: AgentDefinition, { name }: HookDefinition): Record<string, unknown> {
  const setting = hooks[name];
  return typeof setting === "object" ? setting : {};
}

const MAX_MODELS = 64;

/** Makes each model once and keeps it; past 64 of them the one unused for longest is made again when asked for. */
export function keepModels(create: Catalogue["createModel"]): Catalogue["createModel"] {
  const kept = new Map<string, Model>();
  return (spec: ModelSpec) => {
    const key = JSON.stringify(spec);
    const model = kept.get(key) ?? create(spec);
    kept.delete(key);
    kept.set(key, model);
    const [oldest] = kept.keys();
    if (kept.size > MAX_MODELS && oldest !== undefined) kept.delete(oldest);
    return model;
  };
}
