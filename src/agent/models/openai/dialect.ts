// Where servers that speak OpenAI's protocol differ: what one needs another refuses.

import type { OutputMode } from "../output.ts";
import { CALL_ID } from "../repair.ts";

export interface Dialect {
  readonly maxTokens: "max_tokens" | "max_completion_tokens";
  /** Counts tokens only when asked to. */
  readonly askForUsage: boolean;
  readonly callId: RegExp;
  /** Takes back the ids that its own models made, in any form. */
  readonly keepsOwnIds: boolean;
  /** Wants to find a thought in every reply, and be it an empty one. */
  readonly thoughtInEveryReply: boolean;
  /**
   * Models that take tools here only while they do not reason; with both they want another endpoint.
   * https://github.com/openai/openai-openapi/issues/541
   */
  readonly toolsOrReasoning: (model: string) => boolean;
  /** Whether the server holds this model to a schema, with tools or without. */
  readonly output: (model: string, hasTools: boolean) => OutputMode;
  /** Takes documents, not only images. */
  readonly documents: boolean;
  /** Google's: thoughts are asked for by a field of its own, and a call comes with a signature that it wants back. */
  readonly google: boolean;
}

const COMMON: Dialect = {
  maxTokens: "max_tokens",
  askForUsage: true,
  callId: CALL_ID,
  keepsOwnIds: true,
  thoughtInEveryReply: false,
  toolsOrReasoning: () => false,
  output: () => "tool",
  documents: true,
  google: false,
};

/** Gemini, at Google AI Studio and at Vertex AI. */
const GOOGLE: Partial<Dialect> = {
  documents: false,
  google: true,
  // Before Gemini 3 it is one or the other.
  output: (model, hasTools) => (hasTools && /gemini-[12]\b/.test(model) ? "tool" : "native"),
};

const DIALECTS: readonly { readonly host: RegExp; readonly dialect: Partial<Dialect> }[] = [
  {
    host: /(^|\.)openai\.(azure\.)?com$/,
    dialect: {
      maxTokens: "max_completion_tokens",
      keepsOwnIds: false,
      toolsOrReasoning: (model) => versionOf(model) >= 5.4,
      output: () => "native",
    },
  },
  { host: /(^|\.)googleapis\.com$/, dialect: GOOGLE },
  {
    host: /(^|\.)mistral\.ai$/,
    dialect: { askForUsage: false, callId: /^[a-zA-Z0-9]{9}$/, keepsOwnIds: false },
  },
  { host: /(^|\.)deepseek\.com$/, dialect: { thoughtInEveryReply: true } },
];

export function dialectOf(baseUrl: string): Dialect {
  const { hostname } = new URL(baseUrl);
  return { ...COMMON, ...DIALECTS.find(({ host }) => host.test(hostname))?.dialect };
}

/** `gpt-5.6-terra` is 5.6; a model that is no GPT is 0. */
function versionOf(model: string): number {
  return Number(/^gpt-(\d+(?:\.\d)?)/.exec(model)?.[1] ?? 0);
}
