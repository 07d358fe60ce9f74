// Models on Google's Vertex AI. Claude uses Anthropic's SDK for Vertex, and Gemini uses the endpoint with OpenAI's protocol.

import type { Model } from "../../core/model.ts";
import { givenToken } from "../google-auth.ts";
import { vertexGemini } from "../openai/vertex.ts";
import { type ModelOptions, missingKey } from "../options.ts";
import { packageFor } from "../package.ts";
import { type Send, throughSdk } from "../sending.ts";
import { anthropicModel, EXCHANGE, PATH } from "./client.ts";

export const projectOf = (env: NodeJS.ProcessEnv) =>
  env.GOOGLE_CLOUD_PROJECT?.trim() || env.ANTHROPIC_VERTEX_PROJECT_ID?.trim();
const locationOf = (env: NodeJS.ProcessEnv) =>
  env.GOOGLE_CLOUD_LOCATION?.trim() || env.CLOUD_ML_REGION?.trim() || "global";

export function vertexAddress(env: NodeJS.ProcessEnv): string {
  const location = locationOf(env);
  if (location === "global") return "https://aiplatform.googleapis.com/v1";
  // Vertex AI has these two multi-regions.
  if (location === "us" || location === "eu") return `https://aiplatform.${location}.rep.googleapis.com/v1`;
  return `https://${location}-aiplatform.googleapis.com/v1`;
}

export function vertexModel(options: ModelOptions, env: NodeJS.ProcessEnv): Model {
  const place = { project: projectOf(env) ?? "", location: locationOf(env) };
  if (!/claude/.test(options.model)) return vertexGemini(options, place);
  // Google enforces schemas for fewer models than Anthropic.
  const enforces = /claude-\w+-(4-[6-9]|[5-9])\b/.test(options.model);
  return anthropicModel({
    ...options,
    enforces,
    searches: true,
    connect: () => connect(options, place),
  });
}

interface VertexProject {
  readonly project: string;
  readonly location: string;
}

async function connect(options: ModelOptions, { project, location }: VertexProject): Promise<Send> {
  const { name, baseUrl, key } = options;
  if ("missing" in key) throw missingKey(key, name);
  const vertex = "@anthropic-ai/vertex-sdk";
  const { AnthropicVertex } = await packageFor(name, vertex, () => import("@anthropic-ai/vertex-sdk"));
  const authClient = await givenToken(options);
  const client = new AnthropicVertex({
    ...EXCHANGE,
    baseURL: baseUrl,
    projectId: project,
    region: location,
    ...(authClient ? { authClient } : {}),
  });
  return throughSdk(client, PATH, { takesObjectsOnly: true });
}
