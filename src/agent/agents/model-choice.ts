// Chooses an agent's model: the configured one, the model that a run requests, or a model with a key in the environment.

import type { Variables } from "../../lib/yaml/interpolate.ts";
import { ModelSpec } from "../core/agent.ts";
import { AppError, messageOf } from "../core/errors.ts";
import { type Model, modelMatcher } from "../core/model.ts";
import type { Catalogue, ModelChoice } from "./catalogue.ts";

/**
 * The models that a key or an address in the environment selects. The first variable that is set selects the
 * model.
 */
const MODELS_BY_VARIABLE = [
  ["ANTHROPIC_API_KEY", "anthropic:claude-sonnet-4-5"],
  ["ANTHROPIC_BASE_URL", "anthropic:claude-sonnet-4-5"],
  ["OPENAI_API_KEY", "openai:gpt-5-mini"],
  ["OPENAI_BASE_URL", "openai:gpt-5-mini"],
] as const;

const choiceIn = (env: Variables) => MODELS_BY_VARIABLE.find(([variable]) => env[variable]);

/**
 * Returns the default model. It is a model whose key or address is set in the environment, or the built-in
 * demo.
 */
export function automaticModel(env: Variables): ModelSpec {
  return choiceIn(env)?.[1] ?? "scripted:demo";
}

/** Explains why an agent without a configured model uses `automaticModel`. */
export function reasonOfAutomaticModel(env: Variables): string {
  const [variable] = choiceIn(env) ?? [];
  return variable ? `because ${variable} is set` : "because no key is set";
}

/**
 * Returns the model that a run names, either by its alias or as `provider:model`. If the agent uses the same
 * provider, the model keeps the agent's address, key and settings. Throws `invalid_request` for a model that
 * is unknown or not allowed.
 */
export function requestedModel(name: string, own: ModelSpec, catalogue: Catalogue): ModelSpec {
  const full = fullName(name, catalogue);
  const { modelChoice, createModel, aliases = [] } = catalogue;
  if (modelChoice && !modelChoice.allows(full) && !namesOf(createModel(own)).includes(full))
    throw new AppError("invalid_request", notAllowed(full, modelChoice.list()));
  // An alias has its own address, key and settings.
  if (aliases.includes(name)) return name;
  const [provider = "", model = ""] = full.split(/:(.*)/s);
  if (typeof own === "string" || own.provider !== provider) return `${provider}:${model}`;
  return { ...own, model };
}

/** Operators may use any file as a script, but runs may only name built-in scripts. */
const FILE_SCRIPT = /^scripted:(?![\w-]+$)/;

function fullName(name: string, { createModel }: Catalogue): string {
  if (!ModelSpec.safeParse(name).success || FILE_SCRIPT.test(name))
    throw new AppError("invalid_request", `\`${name}\` must be provider:model, for example openai:gpt-5.`);
  try {
    return createModel(name).name;
  } catch (error) {
    throw new AppError("invalid_request", messageOf(error), { cause: error });
  }
}

/** Allows the models that match a pattern and the models that `named` returns. */
export function modelChoice(patterns: readonly string[], named: () => readonly string[]): ModelChoice {
  const matchers = patterns.map(modelMatcher);
  return {
    allows: (name) => named().includes(name) || matchers.some((matches) => matches(name)),
    list: () => [...new Set([...named(), ...patterns])],
  };
}

/** Returns the names of a model and its fallbacks. */
export const namesOf = ({ name, fallback }: Model): string[] =>
  fallback ? [name, ...namesOf(fallback)] : [name];

/** The maximum number of allowed models to list in an error. */
const LISTED = 20;

function notAllowed(name: string, allowed: readonly string[]): string {
  const list = allowed.slice(0, LISTED).map((each) => `\`${each}\``);
  const more = allowed.length > LISTED ? ` and ${allowed.length - LISTED} more` : "";
  return `Runs may not request the model \`${name}\` on this server. Allowed: ${list.join(", ")}${more}.`;
}
