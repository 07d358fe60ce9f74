// Chooses an agent's model: the configured one, the one that a run asks for, or one that this machine has a key for.

import { ModelSpec } from "../core/agent.ts";
import { AppError, messageOf } from "../core/errors.ts";
import type { Variables } from "../lib/yaml/variables.ts";
import type { Catalogue } from "./catalogue.ts";

/** The default: a model that the environment has a key or an address for, else the built-in demo. */
export function automaticModel(env: Variables): ModelSpec {
  if (env.ANTHROPIC_API_KEY || env.ANTHROPIC_BASE_URL) return "anthropic:claude-sonnet-4-5";
  if (env.OPENAI_API_KEY || env.OPENAI_BASE_URL) return "openai:gpt-5-mini";
  return "scripted:demo";
}

/**
 * The model that a run asks for. With the agent's own provider, it keeps the agent's address, key and settings. Throws
 * `invalid_request` for an unknown model.
 */
export function requestedModel(name: string, own: ModelSpec, catalogue: Catalogue): ModelSpec {
  const [provider = "", model = ""] = fullName(name, catalogue).split(/:(.*)/s);
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
