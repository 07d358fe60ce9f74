// OpenAI's models on Azure. Azure expects a deployment instead of a model, a version in the address, and a key or an Entra
// token.

import type { Model } from "../../core/model.ts";
import { type ModelOptions, missingKey, secretOf } from "../options.ts";
import { packageFor } from "../package.ts";
import { besideSdk, type Send, throughSdk } from "../sending.ts";
import { EXCHANGE, openaiModel, PATH } from "./client.ts";
import { dialectOf } from "./dialect.ts";

/** The most recent version that is generally available. */
const API_VERSION = "2024-10-21";
const TOKEN_SCOPE = "https://cognitiveservices.azure.com/.default";
const DIALECT = dialectOf("https://resource.openai.azure.com");

export function azureModel(options: ModelOptions, env: NodeJS.ProcessEnv): Model {
  const apiVersion = env.OPENAI_API_VERSION?.trim() || API_VERSION;
  return openaiModel({ ...options, dialect: DIALECT, connect: () => connect(options, apiVersion) });
}

async function connect({ name, model, baseUrl, key }: ModelOptions, apiVersion: string): Promise<Send> {
  if ("missing" in key) throw missingKey(key, name);
  const { AzureOpenAI } = await import("openai");
  const baseURL = `${baseUrl.replace(/\/+(openai\/*)?$/, "")}/openai`;
  const options = { ...EXCHANGE, baseURL, apiVersion, deployment: model };
  if ("secret" in key) return besideSdk(new AzureOpenAI({ ...options, apiKey: secretOf(key, name) }), PATH);
  // Without a key, the SDK would read one from the environment.
  const azureADTokenProvider = await entraTokens(name);
  return throughSdk(new AzureOpenAI({ ...options, apiKey: "", azureADTokenProvider }), PATH);
}

/**
 * Returns a function that provides access tokens from the machine, a workload or a login. Azure's own SDK
 * finds and renews them.
 */
async function entraTokens(name: string): Promise<() => Promise<string>> {
  const identity = "@azure/identity";
  const { DefaultAzureCredential, getBearerTokenProvider } = await packageFor(
    name,
    identity,
    () => import("@azure/identity"),
  );
  return getBearerTokenProvider(new DefaultAzureCredential(), TOKEN_SCOPE);
}
