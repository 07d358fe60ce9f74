// Claude. The official SDK sends requests; replies are read here.

import type { Anthropic } from "@anthropic-ai/sdk";
import type { Model } from "../../core/model.ts";
import { httpFetch } from "../../lib/http-fetch.ts";
import { converse } from "../exchange.ts";
import { type ModelOptions, secretOf } from "../options.ts";
import { maxTokens } from "./generation.ts";
import { anthropicReply } from "./reply.ts";
import { toWire } from "./wire.ts";

export function anthropicModel(options: ModelOptions): Model {
  const { name, model, baseUrl, key, settings, fallback } = options;
  let client: Promise<Anthropic> | undefined;
  return {
    name,
    ...(fallback ? { fallback } : {}),
    outputLimit: (request) => maxTokens({ ...settings, ...request.settings }),
    stream: (request) =>
      converse(request, {
        reader: anthropicReply(),
        ...("secret" in key ? { secret: key.secret } : {}),
        async open(signal) {
          client ??= connect(baseUrl, secretOf(key, name));
          const { params: body, headers } = toWire(request, model, { ...settings, ...request.settings });
          // Not `messages.create`: that one writes its advice on models to the console, at every call.
          const call = (await client).post("/v1/messages", { body, headers, signal, stream: true });
          return await call.asResponse();
        },
      }),
  };
}

/** Imported when it is first needed: a server starts without it. Nothing is repeated in here; a hook does that. */
async function connect(baseUrl: string, apiKey: string): Promise<Anthropic> {
  const { Anthropic } = await import("@anthropic-ai/sdk");
  return new Anthropic({
    apiKey,
    baseURL: baseUrl.replace(/\/+(v1\/*)?$/, ""),
    fetch: httpFetch,
    maxRetries: 0,
    logLevel: "off",
    openTelemetry: false,
  });
}
