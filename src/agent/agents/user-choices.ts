// Lists the settings of an agent that users may choose for their own runs, in a form for user interfaces.

import { z } from "zod";
import type { AgentDefinition } from "../core/agent.ts";
import { type HookDefinition, UserMay } from "../core/hook.ts";
import { activeHooks, optionsOf } from "./build.ts";
import type { Catalogue } from "./catalogue.ts";
import { namesOf } from "./model-choice.ts";
import { isPattern } from "./tool-choice.ts";

/** The maximum number of models in the list. A person could not choose from a longer list. */
const MAX_MODELS = 200;

const JsonObject = z.record(z.string(), z.unknown());

export const HookChoice = z.object({
  name: z.string(),
  may: UserMay,
  active: z.boolean().describe("True if your runs use the hook."),
  schema: JsonObject.optional().describe("JSON Schema of the hook's options, if you may `configure` it."),
  options: JsonObject.optional().describe(
    "Options with values from your overrides or from the configuration. The schema contains the defaults of all other options.",
  ),
});
export type HookChoice = z.infer<typeof HookChoice>;

/** Returns the hooks that users may change. `definition` is the agent with the user's overrides applied. */
export function hookChoices(definition: AgentDefinition, hooks: readonly HookDefinition[]): HookChoice[] {
  const active = activeHooks(definition, hooks);
  return hooks.flatMap((hook) => {
    const { name, userMay: may } = hook;
    if (!may) return [];
    const choice = { name, may, active: active.includes(hook) };
    if (may !== "configure") return [choice];
    return [{ ...choice, schema: schemaOf(hook), options: optionsOf(definition, hook) }];
  });
}

export const ModelChoices = z.object({
  any: z
    .boolean()
    .describe(
      "True if you can name any model that the server has a key for. `names` lists the known models.",
    ),
  names: z
    .array(z.string())
    .describe(
      `Names in the form \`provider:model\`, starting with the agent's own model. At most ${MAX_MODELS}.`,
    ),
  patterns: z
    .array(z.string())
    .describe(`Globs of other models that you can name, such as \`openai:gpt-5*\`. At most ${MAX_MODELS}.`),
});
export type ModelChoices = z.infer<typeof ModelChoices>;

/**
 * Returns the models that a run or an override of this agent may name. `named` contains all models in the
 * agents' configuration.
 */
export function modelChoices(
  { model }: AgentDefinition,
  { createModel, modelChoice }: Pick<Catalogue, "createModel" | "modelChoice">,
  named: readonly string[],
): ModelChoices {
  const allowed = modelChoice?.list() ?? named;
  const names = [...namesOf(createModel(model)), ...allowed.filter((each) => !isPattern(each))];
  return {
    any: modelChoice === undefined,
    names: [...new Set(names)].slice(0, MAX_MODELS),
    patterns: allowed.filter(isPattern).slice(0, MAX_MODELS),
  };
}

const schemas = new WeakMap<HookDefinition, Record<string, unknown>>();

/**
 * Converts each hook's options to a JSON Schema, once. Omits constraints that JSON Schema cannot express,
 * because the server checks them.
 */
function schemaOf(hook: HookDefinition): Record<string, unknown> {
  const known = schemas.get(hook);
  if (known) return known;
  const { $schema: _, ...schema } = z.toJSONSchema(hook.options, { io: "input", unrepresentable: "any" });
  schemas.set(hook, schema);
  return schema;
}
