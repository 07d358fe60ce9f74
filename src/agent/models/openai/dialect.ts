// Differences between servers that use OpenAI's protocol. Some require fields that others reject.

import type { OutputMode } from "../output.ts";
import { CALL_ID } from "../repair.ts";

export interface OpenAIDialect {
  readonly maxTokens: "max_tokens" | "max_completion_tokens";
  /** The server reports token counts only on request. */
  readonly askForUsage: boolean;
  readonly callId: RegExp;
  /** The server accepts ids that its own models created, in any format. */
  readonly keepsOwnIds: boolean;
  /** The server expects a thought in every reply, even if the thought is empty. */
  readonly thoughtInEveryReply: boolean;
  /**
   * Returns true for models that, at this endpoint, accept tools only without reasoning. For both, they need
   * another endpoint: https://github.com/openai/openai-openapi/issues/541
   */
  readonly toolsOrReasoning: (model: string) => boolean;
  /** Returns how the server makes this model follow a schema, with or without tools. */
  readonly output: (model: string, hasTools: boolean) => OutputMode;
  /** The server accepts documents as well as images. */
  readonly documents: boolean;
  /** The server may search the web if a request asks for it. OpenAI itself does so only with its search models. */
  readonly searchesOnRequest: boolean;
  /**
   * The server uses Google's format, where a separate field requests thoughts and a call includes a signature
   * to send back.
   */
  readonly google: boolean;
}

const COMMON: OpenAIDialect = {
  maxTokens: "max_tokens",
  askForUsage: true,
  callId: CALL_ID,
  keepsOwnIds: true,
  thoughtInEveryReply: false,
  toolsOrReasoning: () => false,
  output: () => "tool",
  documents: true,
  searchesOnRequest: true,
  google: false,
};

/** The dialect of Gemini on Google AI Studio and Vertex AI. */
const GOOGLE: Partial<OpenAIDialect> = {
  documents: false,
  searchesOnRequest: false,
  google: true,
  // Before Gemini 3, models support either tools or an output schema.
  output: (model, hasTools) => (hasTools && /gemini-[12]\b/.test(model) ? "tool" : "native"),
};

const DIALECTS: readonly { readonly host: RegExp; readonly dialect: Partial<OpenAIDialect> }[] = [
  {
    host: /(^|\.)openai\.(azure\.)?com$/,
    dialect: {
      maxTokens: "max_completion_tokens",
      keepsOwnIds: false,
      toolsOrReasoning: (model) => versionOf(model) >= 5.4,
      output: () => "native",
      searchesOnRequest: false,
    },
  },
  { host: /(^|\.)googleapis\.com$/, dialect: GOOGLE },
  {
    host: /(^|\.)mistral\.ai$/,
    dialect: { askForUsage: false, callId: /^[a-zA-Z0-9]{9}$/, keepsOwnIds: false },
  },
  { host: /(^|\.)deepseek\.com$/, dialect: { thoughtInEveryReply: true } },
];

export function dialectOf(baseUrl: string): OpenAIDialect {
  const { hostname } = new URL(baseUrl);
  return { ...COMMON, ...DIALECTS.find(({ host }) => host.test(hostname))?.dialect };
}

/** Returns 5.6 for `gpt-5.6-terra`, and 0 for a model other than GPT. */
function versionOf(model: string): number {
  return Number(/^gpt-(\d+(?:\.\d)?)/.exec(model)?.[1] ?? 0);
}
