// The client for OpenAI and servers that are compatible with its Chat Completions API. The official SDK makes the requests,
// and this code reads the replies.

import { httpFetch } from "../../../lib/http-fetch.ts";
import { DEFAULT_MAX_TOKENS, type Model, type ModelRequest, type ModelSettings } from "../../core/model.ts";
import { closedTurns, leftOut } from "../closed-turns.ts";
import { converse } from "../exchange.ts";
import { type ModelOptions, secretOf } from "../options.ts";
import { enforceable, type OutputMode, planned } from "../output.ts";
import { besideSdk, type Send, type WireOf } from "../sending.ts";
import { dialectOf, type OpenAIDialect } from "./dialect.ts";
import { openaiReply } from "./reply.ts";
import { alwaysSearches, callableTools, takesTools } from "./search.ts";
import { toWire, wireSteps } from "./wire.ts";

/** The path of the requests. */
export const PATH = "/chat/completions";

interface OpenAIOptions extends ModelOptions {
  /** The server's dialect. Default: the dialect that the host of `baseUrl` is known to use. */
  readonly dialect?: OpenAIDialect;
  /** Connects to the server. By default, sends the key as a bearer token. */
  readonly connect?: (options: ModelOptions) => Promise<Send>;
}

export function openaiModel(options: OpenAIOptions): Model {
  const { name, model, baseUrl, key, settings, fallback } = options;
  const { dialect = dialectOf(baseUrl), connect = byKey } = options;
  const steps = wireSteps(dialect);
  const always = alwaysSearches(model);
  const searches = always || (options.searches && dialect.searchesOnRequest);
  let connected: Promise<Send> | undefined;
  return {
    name,
    ...(fallback ? { fallback } : {}),
    ...(searches ? { searches: true, searchesEverywhere: true } : {}),
    ...(always ? { alwaysSearches: true } : {}),
    outputLimit: (request) => limitOf({ ...settings, ...request.settings }),
    stream(asked, deltas) {
      const hasSearched = always || asked.tools.some(({ ofProvider }) => ofProvider);
      const reply = openaiReply({ searches: hasSearched });
      const { request, reader } = planned(asked, reply, {
        mode: outputMode(asked, model, dialect),
        settings,
      });
      return converse(request, {
        reader,
        deltas,
        ...("secret" in key ? { secret: key.secret } : {}),
        async open(signal) {
          connected ??= connect(options);
          const target = { model, settings: { ...settings, ...request.settings }, dialect };
          const send = await connected;
          const wireOf: WireOf = async ({ isWhole }) => {
            const closed = isWhole ? undefined : await closedTurns(request, steps);
            const params = toWire(request, target, closed);
            return { params, leftOut: leftOut(closed, params) };
          };
          return send(request, wireOf, signal);
        },
      });
    },
  };
}

function outputMode(request: ModelRequest, model: string, dialect: OpenAIDialect): OutputMode {
  if (!takesTools(model)) return "native";
  const hasTools = callableTools(request, model).length > 0;
  return request.output && enforceable(request.output) ? dialect.output(model, hasTools) : "tool";
}

function limitOf({ max_tokens, thinking }: ModelSettings): number | undefined {
  return max_tokens ?? (thinking === undefined ? undefined : DEFAULT_MAX_TOKENS + thinking);
}

/** Loads the SDK. The server can start without it. */
export const loadOpenai = () => import("openai");

/** Returns a function that sends requests with an API key. It never retries, because a hook does that. */
async function byKey({ baseUrl, key, name }: ModelOptions): Promise<Send> {
  const apiKey = secretOf(key, name);
  // Users also configure the full request address as the base URL.
  const baseURL = baseUrl.replace(/\/+(chat\/+completions\/*)?$/, "");
  const { OpenAI } = await loadOpenai();
  return besideSdk(new OpenAI({ apiKey, baseURL, ...EXCHANGE }), PATH);
}

/** The options for every client of the SDK. */
export const EXCHANGE = { fetch: httpFetch, maxRetries: 0, logLevel: "off" } as const;
