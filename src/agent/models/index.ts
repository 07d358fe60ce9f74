// Creates models from their configuration. Finds the provider, its address and its key.

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { didYouMean } from "../../lib/did-you-mean.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { packageRoot } from "../../lib/paths.ts";
import { type ModelConfig, type ModelFactory, type ModelSpec, modelNamed } from "../core/agent.ts";
import { AppError } from "../core/errors.ts";
import type { Model } from "../core/model.ts";
import type { Key } from "./options.ts";
import { ownModel } from "./own-model.ts";
import { isGateway, PROVIDERS, type Provider } from "./providers.ts";
import { scriptedFile } from "./scripted.ts";

const SCRIPTED = "scripted";

type Single = string | ModelConfig;

/** The providers that plugins add, by name. */
export type OwnProviders = ReadonlyMap<string, ModelFactory>;

/**
 * Creates the model, linked to its fallbacks. Does not open a connection, so a missing key fails only the
 * first call. Throws `config_invalid` for an unknown provider or an invalid address.
 */
export function createModel(spec: ModelSpec, env: NodeJS.ProcessEnv, own: OwnProviders = new Map()): Model {
  return chainOf(spec).reduceRight<Model | undefined>(
    (fallback, single) => createOne(configOf(single), env, fallback, own),
    undefined,
  ) as Model; // because a chain has at least one link
}

/** Returns a clause that explains why calls to `spec`, or to one of its fallbacks, would currently fail. */
export function modelDoubt(spec: ModelSpec, env: NodeJS.ProcessEnv): string | undefined {
  const variable = missingKey(spec, env);
  if (variable !== undefined)
    return `environment variable \`${variable}\` is not set, so calls to its model will fail`;
  return chainOf(spec)
    .map(configOf)
    .flatMap(({ provider, model }) => (provider === SCRIPTED && !isBuiltIn(model) ? model : []))
    .filter((path) => !existsSync(path))
    .map((path) => `the file \`${path}\` does not exist, so calls to its model will fail`)[0];
}

/** Returns the unset environment variable that a call to `spec`, or to one of its fallbacks, needs. */
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

const configOf = (single: Single): ModelConfig => (typeof single === "string" ? modelNamed(single) : single);

function createOne(
  config: ModelConfig,
  env: NodeJS.ProcessEnv,
  fallback: Model | undefined,
  own: OwnProviders,
): Model {
  const { provider: providerName, model, temperature, max_tokens, thinking, tool_choice } = config;
  const name = `${providerName}:${model}`;
  const factory = own.get(providerName);
  if (factory) return searching(config, ownModel(name, factory(config, env), fallback));
  if (providerName === SCRIPTED)
    return searching(config, { ...scriptedFile(scriptPath(model), name), fallback });
  const provider = providerOf(providerName);
  if (!provider) throw unknownProvider(providerName, own);
  const baseUrl = addressOf(config, provider, env);
  if (!URL.canParse(baseUrl))
    throw new AppError(
      "config_invalid",
      `\`${baseUrl}\` is not a valid base URL for \`${name}\`. Use one such as ${usual(provider.baseUrl, env)}.`,
    );
  const settings = omitUndefined({ temperature, max_tokens, thinking, tool_choice });
  const key = keyOf(config, provider, env);
  const { searches } = config;
  const options = { name, model, baseUrl, key, settings, searches, fallback };
  const made = searching(config, provider.create(options, env));
  return (config.traceparent ?? isGateway(baseUrl)) ? made : untraced(made);
}

/** Throws `config_invalid` if `searches` is true in the configuration but the model cannot search the web. */
function searching({ searches }: ModelConfig, made: Model): Model {
  if (!searches || made.searches) return made;
  throw new AppError(
    "config_invalid",
    `\`${made.name}\` has no search of its own, so \`searches: true\` does not apply to it.`,
  );
}

/** Loads the SDKs of these models (`provider:model`), so their first calls do not have to wait for an SDK to load. */
export async function loadSdks(models: readonly string[]): Promise<void> {
  const providers = new Set(models.map((name) => name.split(":", 1)[0] ?? ""));
  for (const name of providers) await providerOf(name)?.loadSdk?.();
}

export const providerNames = (): string[] => [...Object.keys(PROVIDERS), SCRIPTED];

/** Removes the trace context from the model's requests. */
const untraced = (made: Model): Model => ({
  ...made,
  stream: ({ traceparent: _, ...request }, deltas) => made.stream(request, deltas),
});

const providerOf = (name: string) => (Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name] : undefined);

/** True for a built-in script. A built-in script is named by a single word, and any other text is a path. */
const isBuiltIn = (script: string) => /^[\w-]+$/.test(script);

/** Throws `config_invalid` when no built-in script has this name. */
function scriptPath(script: string): string {
  if (!isBuiltIn(script)) return script;
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
  return base_url ?? ((baseUrlEnv && env[baseUrlEnv]?.trim()) || usual(baseUrl, env));
}

const usual = (baseUrl: Provider["baseUrl"], env: NodeJS.ProcessEnv) =>
  typeof baseUrl === "string" ? baseUrl : baseUrl(env);

function keyOf(config: ModelConfig, provider: Provider, env: NodeJS.ProcessEnv): Key {
  const missing = missingFor(config, env);
  if (missing) return { missing: `Set ${missing}.` };
  const secret = givenKey(config, provider, env);
  if (secret === undefined && (provider.credentialsEnv || provider.findsCredentials))
    return { others: "found by the SDK" };
  return { secret: secret ?? "none" };
}

function givenKey({ api_key, api_key_env }: ModelConfig, { keyEnv = [] }: Provider, env: NodeJS.ProcessEnv) {
  const variables = api_key_env === undefined ? [keyEnv].flat() : [api_key_env];
  return api_key?.trim() || variables.map((name) => env[name]?.trim()).find(Boolean);
}

/** Returns the variable to set first. Only the provider's own address always needs a key. */
function missingFor(config: ModelConfig, env: NodeJS.ProcessEnv): string | undefined {
  const provider = providerOf(config.provider);
  if (!provider) return undefined;
  const { hasOwnAddress, baseUrl, baseUrlEnv, keyEnv, credentialsEnv = [] } = provider;
  const isDefault = addressOf(config, provider, env) === usual(baseUrl, env);
  const missing = provider.missing?.(env);
  if (missing) return missing;
  if (hasOwnAddress && isDefault) return baseUrlEnv;
  if (givenKey(config, provider, env) !== undefined) return undefined;
  if (config.api_key_env) return config.api_key_env;
  if (provider.findsCredentials || credentialsEnv.some((name) => env[name]?.trim())) return undefined;
  return hasOwnAddress || isDefault ? [keyEnv].flat()[0] : undefined;
}

function unknownProvider(name: string, own: OwnProviders): AppError {
  const names = [...providerNames(), ...own.keys()];
  const known = names.map((known) => `\`${known}\``).join(", ");
  return new AppError(
    "config_invalid",
    `There is no model provider \`${name}\`${didYouMean(name, names) || "."} Use one of ${known}, or \`openai\` with a base_url.`,
  );
}
