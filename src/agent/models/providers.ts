// The model providers, by name.

import type { Model } from "../core/model.ts";
import { bedrockAddress, bedrockModel, regionOf } from "./anthropic/bedrock.ts";
import { anthropicModel, loadAnthropic } from "./anthropic/client.ts";
import { projectOf, vertexAddress, vertexModel } from "./anthropic/vertex.ts";
import { azureModel } from "./openai/azure.ts";
import { loadOpenai, openaiModel } from "./openai/client.ts";
import { dialectOf } from "./openai/dialect.ts";
import type { ModelOptions } from "./options.ts";

export interface Provider {
  /** Creates a model. The first call loads the provider's SDK. */
  readonly create: (options: ModelOptions, env: NodeJS.ProcessEnv) => Model;
  /** Loads the SDK in advance. */
  readonly loadSdk?: () => Promise<unknown>;
  /** The provider's address, or an example if each customer has a different one. */
  readonly baseUrl: string | ((env: NodeJS.ProcessEnv) => string);
  /** The variable that sets another address. */
  readonly baseUrlEnv?: string;
  /** Set if every customer has a different address. */
  readonly hasOwnAddress?: true;
  /**
   * The variables for the key. The first variable that is set provides the key. If this list is missing, the
   * provider needs no key.
   */
  readonly keyEnv?: string | readonly string[];
  /** If one of these variables is set, the SDK finds credentials other than a key. */
  readonly credentialsEnv?: readonly string[];
  /** Set if the SDK also looks for credentials outside the environment. */
  readonly findsCredentials?: true;
  /** Returns an unset variable that every call needs. */
  readonly missing?: (env: NodeJS.ProcessEnv) => string | undefined;
}

const GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai";

const ANTHROPIC = { create: anthropicModel, loadSdk: loadAnthropic };
const OPENAI = { create: openaiModel, loadSdk: loadOpenai };

export const PROVIDERS: Readonly<Record<string, Provider>> = {
  anthropic: {
    ...ANTHROPIC,
    baseUrl: "https://api.anthropic.com",
    baseUrlEnv: "ANTHROPIC_BASE_URL",
    keyEnv: "ANTHROPIC_API_KEY",
  },
  openai: {
    ...OPENAI,
    baseUrl: "https://api.openai.com/v1",
    baseUrlEnv: "OPENAI_BASE_URL",
    keyEnv: "OPENAI_API_KEY",
  },
  azure: {
    ...OPENAI,
    create: azureModel,
    baseUrl: "https://resource.openai.azure.com",
    baseUrlEnv: "AZURE_OPENAI_ENDPOINT",
    keyEnv: "AZURE_OPENAI_API_KEY",
    credentialsEnv: ["AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_TOKEN_CREDENTIALS", "IDENTITY_ENDPOINT"],
    hasOwnAddress: true,
  },
  bedrock: {
    create: bedrockModel,
    baseUrl: bedrockAddress,
    baseUrlEnv: "ANTHROPIC_BEDROCK_BASE_URL",
    keyEnv: "AWS_BEARER_TOKEN_BEDROCK",
    findsCredentials: true,
    missing: (env) => (regionOf(env) ? undefined : "AWS_REGION"),
  },
  vertex: {
    create: vertexModel,
    baseUrl: vertexAddress,
    baseUrlEnv: "ANTHROPIC_VERTEX_BASE_URL",
    findsCredentials: true,
    missing: (env) => (projectOf(env) ? undefined : "GOOGLE_CLOUD_PROJECT"),
  },
  gemini: {
    ...OPENAI,
    create: (options) => openaiModel({ ...options, dialect: dialectOf(GEMINI) }),
    baseUrl: GEMINI,
    keyEnv: ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
  },
  deepseek: { ...OPENAI, baseUrl: "https://api.deepseek.com/v1", keyEnv: "DEEPSEEK_API_KEY" },
  groq: { ...OPENAI, baseUrl: "https://api.groq.com/openai/v1", keyEnv: "GROQ_API_KEY" },
  mistral: { ...OPENAI, baseUrl: "https://api.mistral.ai/v1", keyEnv: "MISTRAL_API_KEY" },
  ollama: { ...OPENAI, baseUrl: "http://127.0.0.1:11434/v1" },
  openrouter: { ...OPENAI, baseUrl: "https://openrouter.ai/api/v1", keyEnv: "OPENROUTER_API_KEY" },
  together: { ...OPENAI, baseUrl: "https://api.together.xyz/v1", keyEnv: "TOGETHER_API_KEY" },
  xai: { ...OPENAI, baseUrl: "https://api.x.ai/v1", keyEnv: "XAI_API_KEY" },
};

/** Returns `openai.com` for `api.openai.com`. */
const domainOf = (url: string) => new URL(url).hostname.split(".").slice(-2).join(".");

/** The domains of providers. Excludes Ollama, which uses plain HTTP at an address that the user chooses. */
const DOMAINS: ReadonlySet<string> = new Set(
  Object.values(PROVIDERS)
    .map(({ baseUrl }) => (typeof baseUrl === "string" ? baseUrl : baseUrl({})))
    .filter((url) => url.startsWith("https:"))
    .map(domainOf),
);

/**
 * True if the address belongs to an operator's own gateway rather than a provider. Only gateways receive the
 * trace context of runs.
 */
export const isGateway = (baseUrl: string): boolean => !DOMAINS.has(domainOf(baseUrl));
