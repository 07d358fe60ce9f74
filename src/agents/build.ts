// From a definition to an agent ready to run: its tools, its hooks made anew, its model.

import { LRUCache } from "lru-cache";
import type { AgentDefinition, ModelSpec } from "../core/agent.ts";
import type { Backend } from "../core/backend.ts";
import { warning } from "../core/event.ts";
import type { Hook, HookDefinition, ModelCallQuotas, Subagents } from "../core/hook.ts";
import type { InterruptPolicy } from "../core/interrupt.ts";
import type { Model } from "../core/model.ts";
import type { Agent } from "../core/runnable-agent.ts";
import type { ItemStore } from "../core/stores.ts";
import type { Tool, TraceRecorder } from "../core/tool.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";
import type { Catalogue } from "./catalogue.ts";
import { requestedModel } from "./model-choice.ts";
import { issuesOf, overridden, told } from "./overrides.ts";
import { chosenTools, leftOut, reservedNames } from "./tool-choice.ts";

export interface BuildOptions {
  readonly backend?: Backend;
  readonly recorder?: TraceRecorder;
  readonly quotas?: ModelCallQuotas;
  readonly items?: ItemStore;
  readonly subagents?: Subagents;
  /** Those of the tenant, for `tools:` to choose from as well. */
  readonly tools?: readonly Tool[];
  /** `provider:model`, instead of the definition's. */
  readonly model?: string;
  /** What is kept of the user's changes. What does not fit any more is left out, and the run's viewers are told so. */
  readonly user?: unknown;
}

/** For one run. Throws `invalid_request` for a model that there is not. */
export function buildAgent(described: AgentDefinition, catalogue: Catalogue, options: BuildOptions): Agent {
  const { model, user, tools = [], ...parts } = options;
  const { definition, faults } = overridden(described, user, catalogue);
  const services = { agent: definition, createModel: catalogue.createModel, ...parts };
  const taken = reservedNames(catalogue);
  const spec = model === undefined ? definition.model : requestedModel(model, described.model, catalogue);
  return {
    name: definition.name,
    ...omitUndefined({ description: definition.description }),
    model: catalogue.createModel(spec),
    system: definition.system,
    tools: chosenTools(definition.tools ?? [], [
      ...catalogue.tools(),
      ...tools.filter((tool) => !taken.has(tool.name)),
    ]),
    without: leftOut(definition.tools, catalogue.hooks),
    hooks: [
      ...(faults.length > 0 ? [ignoring(told(issuesOf(faults)))] : []),
      ...activeHooks(definition, catalogue.hooks).map((hook) =>
        hook.create(hook.options.parse(optionsOf(definition, hook)), services),
      ),
    ],
    maxIterations: definition.max_iterations,
    ...(definition.interrupts ? { interrupts: policyOf(definition.interrupts) } : {}),
  };
}

/** Says once in a run what of its user's changes is left out. */
function ignoring(what: string): Hook {
  const text = `What you have changed of this agent does not fit it any more, and is ignored: ${what}`;
  return {
    name: "overrides",
    async *beforeAgent() {
      yield warning("overrides_ignored", text);
    },
  };
}

function policyOf(interrupts: NonNullable<AgentDefinition["interrupts"]>): InterruptPolicy {
  const { expires_after, on_expiry: onExpiry, unattended } = interrupts;
  return { onExpiry, unattended, ...omitUndefined({ expiresAfterMs: expires_after }) };
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

/** Creates each model once and keeps the 64 most recently used. */
export function memoizeModels(create: Catalogue["createModel"]): Catalogue["createModel"] {
  const models = new LRUCache<string, Model>({ max: MAX_MODELS });
  return (spec: ModelSpec) => {
    const key = JSON.stringify(spec);
    const model = models.get(key) ?? create(spec);
    models.set(key, model);
    return model;
  };
}
