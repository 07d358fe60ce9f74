// The client for Claude. The official SDK makes the requests, and this code reads the replies.

import { httpFetch } from "../../../lib/http-fetch.ts";
import type { Model } from "../../core/model.ts";
import { closedTurns, leftOut } from "../closed-turns.ts";
import { converse } from "../exchange.ts";
import { type ModelOptions, secretOf } from "../options.ts";
import { enforceable, planned } from "../output.ts";
import { besideSdk, type Send, type WireOf } from "../sending.ts";
import { generationOf, maxTokens } from "./generation.ts";
import { anthropicReply } from "./reply.ts";
import { toWire, wireSteps } from "./wire.ts";

/**
 * The path of the requests. `messages.create` is not used, because it prints advice about models to the
 * console on every call.
 */
export const PATH = "/v1/messages";

interface AnthropicOptions extends ModelOptions {
  /** Connects to the provider. By default, sends the key to Anthropic. */
  readonly connect?: (options: ModelOptions) => Promise<Send>;
  /**
   * True if the provider enforces output schemas. Default: true if Anthropic enforces them for this model.
   */
  readonly enforces?: boolean;
}

export function anthropicModel(options: AnthropicOptions): Model {
  const { name, model, baseUrl, key, settings, fallback, connect = byKey } = options;
  const { enforces = generationOf(model).output } = options;
  const keepsOwnIds = !options.connect && !/(^|\.)anthropic\.com$/.test(new URL(baseUrl).hostname);
  const steps = wireSteps(keepsOwnIds);
  let connected: Promise<Send> | undefined;
  return {
    name,
    ...(fallback ? { fallback } : {}),
    outputLimit: (request) => maxTokens({ ...settings, ...request.settings }),
    stream(asked, deltas) {
      const mode = enforces && asked.output && enforceable(asked.output) ? "native" : "tool";
      const { request, reader } = planned(asked, anthropicReply(), { mode, settings });
      return converse(request, {
        reader,
        deltas,
        ...("secret" in key ? { secret: key.secret } : {}),
        async open(signal) {
          connected ??= connect(options);
          const target = { model, settings: { ...settings, ...request.settings }, keepsOwnIds };
          const send = await connected;
          const wireOf: WireOf = async ({ isWhole }) => {
            const closed = isWhole ? undefined : await closedTurns(request, steps);
            const wire = toWire(request, target, closed);
            return { ...wire, leftOut: leftOut(closed, wire.params) };
          };
          return send(request, wireOf, signal);
        },
      });
    },
  };
}

/** Loads the SDK. The server can start without it. */
export const loadAnthropic = () => import("@anthropic-ai/sdk");

/** Returns a function that sends requests with an API key. It never retries, because a hook does that. */
async function byKey({ baseUrl, key, name }: ModelOptions): Promise<Send> {
  const apiKey = secretOf(key, name);
  const { Anthropic } = await loadAnthropic();
  // Users also configure the full request address as the base URL.
  const baseURL = baseUrl.replace(/\/+(v1(\/+messages)?\/*)?$/, "");
  return besideSdk(new Anthropic({ ...EXCHANGE, apiKey, baseURL }), PATH);
}

/** The options for every client of the SDK. */
export const EXCHANGE = { fetch: httpFetch, maxRetries: 0, logLevel: "off", openTelemetry: false } as const;
