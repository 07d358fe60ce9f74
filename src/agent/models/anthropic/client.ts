// The client for Claude. The official SDK makes the requests, and this code reads the replies.

import { httpFetch } from "../../../lib/http-fetch.ts";
import type { Model, ModelReply, ModelRequest } from "../../core/model.ts";
import { closedTurns, leftOut } from "../closed-turns.ts";
import { converse, type Exchange } from "../exchange.ts";
import { type ModelOptions, secretOf } from "../options.ts";
import { enforceable, planned } from "../output.ts";
import type { ReplyReader } from "../reply.ts";
import { besideSdk, type Send, type WireOf } from "../sending.ts";
import { generationOf, maxTokens } from "./generation.ts";
import { continuing, MAX_PAUSES, restOf } from "./paused.ts";
import { anthropicReply } from "./reply.ts";
import { blocksOf, toWire, wireSteps } from "./wire.ts";

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
  const isAnthropic = /(^|\.)anthropic\.com$/.test(new URL(baseUrl).hostname);
  const keepsOwnIds = !options.connect && !isAnthropic;
  const searches = options.searches ?? (!options.connect && isAnthropic);
  const steps = wireSteps(keepsOwnIds);
  const stepsWithBlocks = wireSteps(keepsOwnIds, name.split(":", 1)[0]);
  let connected: Promise<Send> | undefined;
  const send: Send = async (...call) => {
    connected ??= connect(options);
    return (await connected)(...call);
  };
  return {
    name,
    ...(fallback ? { fallback } : {}),
    ...(searches ? { searches: true } : {}),
    outputLimit: (request) => maxTokens({ ...settings, ...request.settings }),
    stream(asked, deltas) {
      const searching = blocksOf(asked) !== undefined;
      // The provider refuses to combine an output schema with citations, and its search always produces
      // citations.
      const isEnforced = enforces && !searching && asked.output && enforceable(asked.output);
      const mode = isEnforced ? "native" : "tool";
      const plan = (reader: ReplyReader) => planned(asked, reader, { mode, settings });
      const { request } = plan(anthropicReply());
      const wireOf =
        (asking: ModelRequest, paused: ModelReply | undefined): WireOf =>
        async ({ isWhole }) => {
          const target = { model, settings: { ...settings, ...asking.settings }, keepsOwnIds };
          const closed = isWhole ? undefined : await closedTurns(asking, searching ? stepsWithBlocks : steps);
          const wire = toWire(asking, target, { closed, paused });
          return { ...wire, leftOut: leftOut(closed, wire.params) };
        };
      const exchange = (asking: ModelRequest, { paused, pauses, length }: SoFar): Exchange => {
        const own = anthropicReply({ searches: searching, before: length });
        return {
          reader: plan(paused ? continuing(own, paused) : own).reader,
          deltas,
          ...("secret" in key ? { secret: key.secret } : {}),
          open: (signal) => send(asking, wireOf(asking, paused), signal),
          next(reply) {
            const rest = own.isPaused && pauses < MAX_PAUSES && restOf(request, reply);
            if (!rest) return undefined;
            return exchange(rest, { paused: reply, pauses: pauses + 1, length: own.length });
          },
        };
      };
      return converse(request, exchange(request, { pauses: 0, length: 0 }));
    },
  };
}

/** A reply that the provider has paused so far. */
interface SoFar {
  readonly paused?: ModelReply;
  readonly pauses: number;
  /** The number of its characters, including those of blocks and arguments. */
  readonly length: number;
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
