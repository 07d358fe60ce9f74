// OpenAI's models at Azure: a deployment in place of the model, a version in the address, a key or an Entra token.

import type { Model } from "../../core/model.ts";
import { type ModelOptions, missingKey, secretOf } from "../options.ts";
import { packageFor } from "../package.ts";
import { besideSdk, type Send, throughSdk } from "../sending.ts";
import { EXCHANGE, openaiModel, PATH } from "./client.ts";
import { dialectOf } from "./dialect.ts";

/** The newest that is generally available. */
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
  // The SDK would look for a key in the environment if it were given none.
  const azureADTokenProvider = await entraTokens(name);
  return throughSdk(new AzureOpenAI({ ...options, apiKey: "", azureADTokenProvider }), PATH);
}

/** Tokens of the machine, of a workload or of a login, found and renewed by Azure's own SDK. */
async function entraTokens(name: string): Promise<() => Promise<string>> {
  const identity = "@azure/identity";
  const { DefaultAzureCredential, getBearerTokenProvider } = await packageFor(
    name,
    identity,
    () => import("@azure/identity"),
  );
  return getBearerTokenProvider(new DefaultAzureCredential(), TOKEN_SCOPE);
}
