// Chooses an agent's model: the configured one, the one that a run asks for, or one that this machine has a key for.

import type { Variables } from "../../lib/yaml/interpolate.ts";
import { ModelSpec } from "../core/agent.ts";
import { AppError, messageOf } from "../core/errors.ts";
import { type Model, modelMatcher } from "../core/model.ts";
import type { Catalogue, ModelChoice } from "./catalogue.ts";

/** The models that a key or an address in the environment chooses. The first variable that is set counts. */
const MODELS_BY_VARIABLE = [
  ["ANTHROPIC_API_KEY", "anthropic:claude-sonnet-4-5"],
  ["ANTHROPIC_BASE_URL", "anthropic:claude-sonnet-4-5"],
  ["OPENAI_API_KEY", "openai:gpt-5-mini"],
  ["OPENAI_BASE_URL", "openai:gpt-5-mini"],
] as const;

const choiceIn = (env: Variables) => MODELS_BY_VARIABLE.find(([variable]) => env[variable]);

/** The default: a model that the environment has a key or an address for, else the built-in demo. */
export function automaticModel(env: Variables): ModelSpec {
  return choiceIn(env)?.[1] ?? "scripted:demo";
}

/** Why an agent without a model of its own asks `automaticModel`. */
export function reasonOfAutomaticModel(env: Variables): string {
  const [variable] = choiceIn(env) ?? [];
  return variable ? `because ${variable} is set` : "because no key is set";
}

/**
 * The model that a run asks for: a name of the file's `models`, or `provider:model`. With the agent's own provider, it keeps the agent's address, key and settings. Throws
 * `invalid_request` for a model that is unknown or not allowed.
 */
export function requestedModel(name: string, own: ModelSpec, catalogue: Catalogue): ModelSpec {
  const full = fullName(name, catalogue);
  const { modelChoice, createModel, aliases = [] } = catalogue;
  if (modelChoice && !modelChoice.allows(full) && !namesOf(createModel(own)).includes(full))
    throw new AppError("invalid_request", notAllowed(full, modelChoice.list()));
  // A name of the file brings its own address, key and settings.
  if (aliases.includes(name)) return name;
  const [provider = "", model = ""] = full.split(/:(.*)/s);
  if (typeof own === "string" || own.provider !== provider) return `${provider}:${model}`;
  return { ...own, model };
}

/** Scripts may be any file of the server, but runs may only name built-in ones. */
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

/** Allows the models that match a pattern, and those that `named` returns. */
export function modelChoice(patterns: readonly string[], named: () => readonly string[]): ModelChoice {
  const matchers = patterns.map(modelMatcher);
  return {
    allows: (name) => named().includes(name) || matchers.some((matches) => matches(name)),
    list: () => [...new Set([...named(), ...patterns])],
  };
}

/** The names of a model and of its fallbacks. */
export const namesOf = ({ name, fallback }: Model): string[] =>
  fallback ? [name, ...namesOf(fallback)] : [name];

/** How many allowed models a refusal lists. */
const LISTED = 20;

function notAllowed(name: string, allowed: readonly string[]): string {
  const list = allowed.slice(0, LISTED).map((each) => `\`${each}\``);
  const more = allowed.length > LISTED ? ` and ${allowed.length - LISTED} more` : "";
  return `Runs may not ask for the model \`${name}\` on this server. Allowed: ${list.join(", ")}${more}.`;
}
