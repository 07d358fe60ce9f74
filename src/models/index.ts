// The providers of models, by name.

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { ModelConfig, ModelSpec } from "../core/agent.ts";
import { AppError } from "../core/errors.ts";
import type { Model } from "../core/model.ts";
import { didYouMean } from "../lib/did-you-mean.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";
import { packageRoot } from "../lib/paths.ts";
import { anthropicModel } from "./anthropic/client.ts";
import { openaiModel } from "./openai/client.ts";
import type { Key, ModelOptions } from "./options.ts";
import { scriptedFile } from "./scripted.ts";

interface Provider {
  readonly create: (options: ModelOptions) => Model;
  readonly baseUrl: string;
  /** The variable that names another address. */
  readonly baseUrlEnv?: string;
  /** The variable that holds the key. Without it the provider wants none. */
  readonly keyEnv?: string;
}

const PROVIDERS: Readonly<Record<string, Provider>> = {
  anthropic: {
    create: anthropicModel,
    baseUrl: "https://api.anthropic.com",
    baseUrlEnv: "ANTHROPIC_BASE_URL",
    keyEnv: "ANTHROPIC_API_KEY",
  },
  openai: {
    create: openaiModel,
    baseUrl: "https://api.openai.com/v1",
    baseUrlEnv: "OPENAI_BASE_URL",
    keyEnv: "OPENAI_API_KEY",
  },
  deepseek: { create: openaiModel, baseUrl: "https://api.deepseek.com/v1", keyEnv: "DEEPSEEK_API_KEY" },
  groq: { create: openaiModel, baseUrl: "https://api.groq.com/openai/v1", keyEnv: "GROQ_API_KEY" },
  mistral: { create: openaiModel, baseUrl: "https://api.mistral.ai/v1", keyEnv: "MISTRAL_API_KEY" },
  ollama: { create: openaiModel, baseUrl: "http://127.0.0.1:11434/v1" },
  openrouter: { create: openaiModel, baseUrl: "https://openrouter.ai/api/v1", keyEnv: "OPENROUTER_API_KEY" },
  together: { create: openaiModel, baseUrl: "https://api.together.xyz/v1", keyEnv: "TOGETHER_API_KEY" },
  xai: { create: openaiModel, baseUrl: "https://api.x.ai/v1", keyEnv: "XAI_API_KEY" },
};

const SCRIPTED = "scripted";

/** Models that may be named without their provider. */
const FAMILIES: readonly (readonly [RegExp, string])[] = [
  [/^claude-/, "anthropic"],
  [/^(gpt-|chatgpt-|o\d)/, "openai"],
];

type Single = string | ModelConfig;

/**
 * The model, linked to its fallbacks. Opens no connection: a missing key is an error of the first call. Throws
 * `config_invalid` for an unknown provider and an invalid address.
 */
export function createModel(spec: ModelSpec, env: NodeJS.ProcessEnv): Model {
  return chainOf(spec).reduceRight<Model | undefined>(
    (fallback, single) => createOne(configOf(single), env, fallback),
    undefined,
  ) as Model; // a chain has at least one link
}

/** The environment variable without which a call to `spec`, or to one of its fallbacks, must fail. */
export function missingKey(spec: ModelSpec, env: NodeJS.ProcessEnv): string | undefined {
  return chainOf(spec)
    .map(configOf)
    .map((config) => missingFor(config, env))
    .find((variable) => variable !== undefined);
}

function chainOf(spec: ModelSpec): Single[] {
  if (typeof spec === "string") return [spec];
  const { fallback = [], ...first } = spec;
  return [first, ...fallback];
}

function configOf(single: Single): ModelConfig {
  if (typeof single !== "string") return single;
  const family = FAMILIES.find(([name]) => name.test(single))?.[1];
  const colon = single.indexOf(":");
  if (colon === -1 && family) return { provider: family, model: single };
  return { provider: single.slice(0, colon), model: single.slice(colon + 1) };
}

function createOne(config: ModelConfig, env: NodeJS.ProcessEnv, fallback: Model | undefined): Model {
  const { provider: providerName, model, temperature, max_tokens, thinking, tool_choice } = config;
  const name = `${providerName}:${model}`;
  if (providerName === SCRIPTED) return { ...scriptedFile(scriptPath(model), name), fallback };
  const provider = providerOf(providerName);
  if (!provider) throw unknownProvider(providerName);
  const baseUrl = addressOf(config, provider, env);
  if (!URL.canParse(baseUrl))
    throw new AppError(
      "config_invalid",
      `\`${baseUrl}\` is not a valid base URL for \`${name}\`. Use one such as ${provider.baseUrl}.`,
    );
  return provider.create({
    name,
    model,
    baseUrl,
    key: keyOf(config, provider, env),
    settings: omitUndefined({ temperature, max_tokens, thinking, tool_choice }),
    fallback,
  });
}

const providerOf = (name: string) => (Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name] : undefined);

/** A word names a built-in script; any other text is a path. Throws `config_invalid` for a word that names none. */
function scriptPath(script: string): string {
  if (!/^[\w-]+$/.test(script)) return script;
  const path = fileURLToPath(new URL(`config/scripts/${script}.yaml`, packageRoot));
  if (existsSync(path)) return path;
  throw new AppError(
    "config_invalid",
    `There is no built-in script \`${script}\`. Use \`scripted:demo\`, or in agents.yaml the path of a file.`,
  );
}

function addressOf(
  { base_url }: ModelConfig,
  { baseUrl, baseUrlEnv }: Provider,
  env: NodeJS.ProcessEnv,
): string {
  return base_url ?? ((baseUrlEnv && env[baseUrlEnv]?.trim()) || baseUrl);
}

function keyOf(config: ModelConfig, provider: Provider, env: NodeJS.ProcessEnv): Key {
  const missing = missingFor(config, env);
  if (missing) return { missing: `Set ${missing}.` };
  return { secret: givenKey(config, provider, env) ?? "none" };
}

function givenKey({ api_key, api_key_env }: ModelConfig, { keyEnv }: Provider, env: NodeJS.ProcessEnv) {
  const variable = api_key_env ?? keyEnv;
  return api_key?.trim() || (variable && env[variable]?.trim()) || undefined;
}

/** The provider's own address needs a key; other addresses may not. */
function missingFor(config: ModelConfig, env: NodeJS.ProcessEnv): string | undefined {
  const provider = providerOf(config.provider);
  if (!provider || givenKey(config, provider, env) !== undefined) return undefined;
  if (config.api_key_env) return config.api_key_env;
  return addressOf(config, provider, env) === provider.baseUrl ? provider.keyEnv : undefined;
}

function unknownProvider(name: string): AppError {
  const names = [...Object.keys(PROVIDERS), SCRIPTED];
  const known = names.map((known) => `\`${known}\``).join(", ");
  return new AppError(
    "config_invalid",
    `There is no model provider \`${name}\`${didYouMean(name, names) || "."} Use one of ${known}, or \`openai\` with a base_url.`,
  );
}
