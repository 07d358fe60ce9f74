// OpenAI and servers compatible with its Chat Completions. The official SDK sends requests; replies are read here.

import type { OpenAI } from "openai";
import { DEFAULT_MAX_TOKENS, type Model, type ModelSettings } from "../../core/model.ts";
import { httpFetch } from "../../lib/http-fetch.ts";
import { converse } from "../exchange.ts";
import { type ModelOptions, secretOf } from "../options.ts";
import { type Dialect, dialectOf } from "./dialect.ts";
import { openaiReply } from "./reply.ts";
import { toWire } from "./wire.ts";

interface OpenAIOptions extends ModelOptions {
  /** Default: what the host of `baseUrl` is known to speak. */
  readonly dialect?: Dialect;
}

export function openaiModel(options: OpenAIOptions): Model {
  const { name, model, baseUrl, key, settings, fallback, dialect = dialectOf(options.baseUrl) } = options;
  let client: Promise<OpenAI> | undefined;
  return {
    name,
    ...(fallback ? { fallback } : {}),
    outputLimit: (request) => limitOf({ ...settings, ...request.settings }),
    stream: (request) =>
      converse(request, {
        reader: openaiReply(),
        ...("secret" in key ? { secret: key.secret } : {}),
        async open(signal) {
          client ??= connect(baseUrl, secretOf(key, name));
          const target = { model, settings: { ...settings, ...request.settings }, dialect };
          const call = (await client).chat.completions.create(toWire(request, target), { signal });
          return await call.asResponse();
        },
      }),
  };
}

function limitOf({ max_tokens, thinking }: ModelSettings): number | undefined {
  return max_tokens ?? (thinking === undefined ? undefined : DEFAULT_MAX_TOKENS + thinking);
}

/** Imported when it is first needed: a server starts without it. Nothing is repeated in here; a hook does that. */
async function connect(baseURL: string, apiKey: string): Promise<OpenAI> {
  const { OpenAI } = await import("openai");
  return new OpenAI({ apiKey, baseURL, fetch: httpFetch, maxRetries: 0, logLevel: "off" });
}
