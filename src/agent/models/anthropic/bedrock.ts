// Models on Amazon Bedrock. Claude uses Anthropic's SDK for Bedrock, and all other models use the endpoint with OpenAI's
// protocol.

import type { Model } from "../../core/model.ts";
import { openaiModel } from "../openai/client.ts";
import { type ModelOptions, missingKey, secretOf } from "../options.ts";
import { packageFor } from "../package.ts";
import { type Send, throughSdk } from "../sending.ts";
import { anthropicModel, EXCHANGE, PATH } from "./client.ts";

export const regionOf = (env: NodeJS.ProcessEnv) => env.AWS_REGION?.trim() || env.AWS_DEFAULT_REGION?.trim();

export const bedrockAddress = (env: NodeJS.ProcessEnv) =>
  `https://bedrock-runtime.${regionOf(env) ?? "us-east-1"}.amazonaws.com`;

export function bedrockModel(given: ModelOptions, env: NodeJS.ProcessEnv): Model {
  // Bedrock executes no searches.
  const options = { ...given, searches: undefined };
  if (/claude/.test(options.model))
    return anthropicModel({ ...options, connect: () => connect(options, env) });
  const { key } = options;
  const missing = { missing: "Set AWS_BEARER_TOKEN_BEDROCK. Other credentials work only for Claude models." };
  return openaiModel({
    ...options,
    baseUrl: `${options.baseUrl.replace(/\/+(openai\/v1\/*)?$/, "")}/openai/v1`,
    key: "others" in key ? missing : key,
  });
}

async function connect({ name, baseUrl, key }: ModelOptions, env: NodeJS.ProcessEnv): Promise<Send> {
  if ("missing" in key) throw missingKey(key, name);
  const bedrock = "@anthropic-ai/bedrock-sdk";
  const { AnthropicBedrock } = await packageFor(name, bedrock, () => import("@anthropic-ai/bedrock-sdk"));
  const client = new AnthropicBedrock({
    ...EXCHANGE,
    baseURL: baseUrl,
    awsRegion: regionOf(env) ?? "us-east-1",
    // `null` prevents the SDK from reading a key from the environment.
    apiKey: "secret" in key ? secretOf(key, name) : null,
    ...credentialsOf(env),
  });
  return throughSdk(client, PATH, { takesObjectsOnly: true });
}

/**
 * Returns credentials from the program's environment. Without them, the SDK searches the same places as AWS's
 * own tools.
 */
function credentialsOf({ AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN }: NodeJS.ProcessEnv) {
  if (!AWS_ACCESS_KEY_ID || !AWS_SECRET_ACCESS_KEY) return {};
  return {
    ...{ awsAccessKey: AWS_ACCESS_KEY_ID, awsSecretKey: AWS_SECRET_ACCESS_KEY },
    awsSessionToken: AWS_SESSION_TOKEN ?? null,
  };
}
