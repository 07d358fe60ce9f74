// Gemini on Vertex AI, called through the endpoint with OpenAI's protocol and a Google access token.

import type { Model } from "../../core/model.ts";
import { googleTokens } from "../google-auth.ts";
import { type ModelOptions, missingKey, secretOf } from "../options.ts";
import { besideSdk, type Send, throughSdk } from "../sending.ts";
import { EXCHANGE, openaiModel, PATH } from "./client.ts";
import { dialectOf } from "./dialect.ts";

const DIALECT = dialectOf("https://aiplatform.googleapis.com");

/** Creates a Gemini model. A `model` without a publisher belongs to Google. */
export function vertexGemini(
  options: ModelOptions,
  { project, location }: { readonly project: string; readonly location: string },
): Model {
  const model = options.model.includes("/") ? options.model : `google/${options.model}`;
  const path = `projects/${encodeURIComponent(project)}/locations/${encodeURIComponent(location)}`;
  const baseUrl = `${options.baseUrl}/${path}/endpoints/openapi`;
  return openaiModel({ ...options, model, baseUrl, dialect: DIALECT, connect });
}

async function connect(options: ModelOptions): Promise<Send> {
  const { name, key, baseUrl: baseURL } = options;
  if ("missing" in key) throw missingKey(key, name);
  const { OpenAI } = await import("openai");
  if ("secret" in key)
    return besideSdk(new OpenAI({ ...EXCHANGE, apiKey: secretOf(key, name), baseURL }), PATH);
  return throughSdk(new OpenAI({ ...EXCHANGE, apiKey: await googleTokens(options), baseURL }), PATH);
}
