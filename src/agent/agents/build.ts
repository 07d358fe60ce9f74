// Builds an agent for one run from its definition: its model, tools and hooks.

import { LRUCache } from "lru-cache";
import { atMost } from "../../lib/lru.ts";
import { oncePer } from "../../lib/once-per.ts";
import { warning } from "../../protocol/event.ts";
import type { InterruptPolicy } from "../../protocol/interrupt.ts";
import type { AgentDefinition, ModelSpec } from "../core/agent.ts";
import type { Backend } from "../core/backend.ts";
import { hookFailed } from "../core/errors.ts";
import type { Hook, HookDefinition, HookServices, ModelCallQuotas, Subagents } from "../core/hook.ts";
import type { ItemStore } from "../core/items.ts";
import type { Model } from "../core/model.ts";
import type { Agent } from "../core/runnable-agent.ts";
import type { TaskBoard } from "../core/task-board.ts";
import type { Tool, TraceRecorder } from "../core/tool.ts";
import type { Catalogue } from "./catalogue.ts";
import { requestedModel } from "./model-choice.ts";
import { issuesOf, overridden, told } from "./overrides.ts";
import { serverToolsOf } from "./server-tools.ts";
import { chosenTools, leftOut, reservedNames } from "./tool-choice.ts";

export interface BuildOptions {
  readonly backend?: Backend | undefined;
  readonly recorder?: TraceRecorder | undefined;
  readonly quotas?: ModelCallQuotas | undefined;
  readonly items?: ItemStore | undefined;
  readonly tasks?: TaskBoard | undefined;
  readonly subagents?: Subagents | undefined;
  /** The tenant's tools, which `tools:` may also name. */
  readonly tools?: readonly Tool[];
  /** The `provider:model` name of the model to use instead of the definition's model. */
  readonly model?: string | undefined;
  /** The user's stored overrides. Overrides that are no longer valid are ignored with a warning. */
  readonly user?: unknown;
}

/** Builds an agent for one run. Throws `invalid_request` for an unknown model. */
export async function buildAgent(
  described: AgentDefinition,
  catalogue: Catalogue,
  options: BuildOptions,
): Promise<Agent> {
  const { model, user, tools = [], ...parts } = options;
  const { definition, faults } = overridden(described, user, catalogue);
  const services = { agent: definition, createModel: catalogue.createModel, ...parts };
  const choice = definition.tools ?? [];
  const servers = serverToolsOf(choice, catalogue);
  const spec = model === undefined ? definition.model : requestedModel(model, described.model, catalogue);
  const switchedOn = new Set(activeHooks(definition, catalogue.hooks));
  const active = catalogue.hooks.filter((hook) => hook.bindsSubagents || switchedOn.has(hook));
  await loadHooks(active);
  return {
    name: definition.name,
    description: definition.description,
    model: catalogue.createModel(spec),
    system: definition.system,
    tools: chosenTools(choice, [...ownTools(catalogue), ...unreserved(tools, catalogue)]),
    ...servers?.tools,
    without: withoutOf(definition)(catalogue.hooks),
    hooks: [
      ...(faults.length > 0 ? [ignoring(told(issuesOf(faults)))] : []),
      ...(servers?.hooks ?? []),
      ...active.map((hook) => created(hook, definition, services)),
    ],
    maxIterations: definition.max_iterations,
    ...(definition.interrupts ? { interrupts: policyOf(definition.interrupts) } : {}),
  };
}

/** Returns the tenant's tools whose names do not conflict with tools of the server. */
function unreserved(tools: readonly Tool[], catalogue: Catalogue): readonly Tool[] {
  if (tools.length === 0) return tools;
  const taken = reservedNames(catalogue);
  return tools.filter((tool) => !taken.has(tool.name));
}

const withoutOf = oncePer(({ tools }: AgentDefinition) =>
  oncePer((hooks: readonly HookDefinition[]) => leftOut(tools, hooks)),
);

/** Parses a hook's options once per definition, so all runs of a definition share them. */
const parsedOptions = oncePer((definition: AgentDefinition) =>
  oncePer((hook: HookDefinition) => Object.freeze(hook.options.parse(optionsOf(definition, hook)))),
);

async function loadHooks(hooks: readonly HookDefinition[]): Promise<void> {
  for (const hook of hooks)
    try {
      // A hook in JavaScript may return something other than a promise.
      if (hook.load) await hook.load();
    } catch (error) {
      throw hookFailed(hook.name, error);
    }
}

function created(hook: HookDefinition, definition: AgentDefinition, services: HookServices): Hook {
  try {
    return hook.create(parsedOptions(definition)(hook), services);
  } catch (error) {
    throw hookFailed(hook.name, error);
  }
}

/** Returns a hook that warns once per run about ignored overrides. */
function ignoring(what: string): Hook {
  const text = `Some of your overrides no longer fit this agent and are ignored: ${what}`;
  return warningOf("overrides", "overrides_ignored", text);
}

/** Returns the server's permanent tools. */
function ownTools({ tools, serverTools }: Catalogue): readonly Tool[] {
  const changing = new Set(serverTools?.());
  return changing.size === 0 ? tools() : tools().filter((tool) => !changing.has(tool));
}

const warningOf = (name: string, code: string, text: string): Hook => ({
  name,
  async *beforeAgent() {
    yield warning(code, text);
  },
});

function policyOf(interrupts: NonNullable<AgentDefinition["interrupts"]>): InterruptPolicy {
  const { expires_after, on_expiry: onExpiry, unattended } = interrupts;
  return { onExpiry, unattended, expiresAfterMs: expires_after };
}

/**
 * Returns the active hooks in the order in which the catalogue lists them, regardless of their order in the
 * YAML file.
 */
export function activeHooks(definition: AgentDefinition, hooks: readonly HookDefinition[]): HookDefinition[] {
  return hooks.filter((hook) => definition.hooks[hook.name] ?? hook.activeByDefault(definition));
}

/** Returns the options as configured, before the hook's schema parses them. */
export function optionsOf({ hooks }: AgentDefinition, { name }: HookDefinition): Record<string, unknown> {
  const setting = hooks[name];
  return typeof setting === "object" ? setting : {};
}

const MAX_MODELS = 64;

/** Creates each model once and keeps the 64 most recently used models. */
export function memoizeModels(create: Catalogue["createModel"]): Catalogue["createModel"] {
  const models = new LRUCache<string, Model>(atMost(MAX_MODELS));
  return (spec: ModelSpec) => {
    const key = JSON.stringify(spec);
    const model = models.get(key) ?? create(spec);
    models.set(key, model);
    return model;
  };
}
