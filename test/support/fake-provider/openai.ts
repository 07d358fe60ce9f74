// OpenAI's side of the wire; its thoughts are those of the servers that copy it.

import { openaiFault } from "./openai-strict.ts";
import {
  type Answer,
  type Block,
  countsOf,
  type Failure,
  type Moment,
  type Stop,
  stopOf,
  timeline,
} from "./script.ts";
import type { Refusal, Vendor } from "./vendor.ts";

const FAILURES: Readonly<
  Record<Failure, readonly [status: number, type: string, code: string | null, message: string]>
> = {
  auth: [401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: sk-abcd****wxyz."],
  rate_limit: [429, "requests", "rate_limit_exceeded", "Rate limit reached for requests"],
  quota: [429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota."],
  overloaded: [503, "server_error", null, "The server is overloaded or not ready yet."],
  server_error: [500, "server_error", null, "The server had an error while processing your request."],
  context_overflow: [
    ...[400, "invalid_request_error", "context_length_exceeded"],
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 213462 tokens.",
  ] as const,
  too_large: [413, "invalid_request_error", null, "Request too large."],
  not_found: [404, "invalid_request_error", "model_not_found", "The model `gpt-none` does not exist."],
  content_filter: [400, "invalid_request_error", "invalid_prompt", "Your prompt was flagged."],
};

const FINISH: Readonly<Record<Stop, string>> = {
  end_turn: "stop",
  tool_use: "tool_calls",
  max_tokens: "length",
  refusal: "content_filter",
  stop_sequence: "stop",
  pause_turn: "stop",
};

export const openai: Vendor = {
  name: "openai",
  path: /\/chat\/completions$/,
  refuse(asked) {
    if (!asked.headers.authorization)
      return refusal(401, "invalid_request_error", null, "You didn't provide an API key.");
    const fault = openaiFault(asked);
    return fault === undefined ? undefined : refusal(400, "invalid_request_error", null, fault);
  },
  fail: (failure) => refusal(...FAILURES[failure]),
  errorFrame(failure) {
    const [status, type, code, message] = FAILURES[failure];
    return data({ error: { message, type, param: null, code: code ?? status } });
  },
  frames(answer, { body }) {
    const { input, output, cacheRead, cacheWrite } = countsOf(answer);
    const usage = {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      prompt_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
    };
    return [
      chunk([choice({ role: "assistant", content: "", refusal: null })]),
      ...timeline(answer).flatMap((moment) => frame(moment, answer)),
      ...annotationsOf(answer).map((each) => chunk([choice({ annotations: [each] })])),
      chunk([choice({}, FINISH[stopOf(answer)])]),
      ...(Object(body).stream_options?.include_usage ? [chunk([], usage)] : []),
      "data: [DONE]\n\n",
    ];
  },
};

function refusal(status: number, type: string, code: string | null, message: string): Refusal {
  return { status, body: { error: { message, type, param: null, code } } };
}

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;

const chunk = (choices: readonly unknown[], usage: unknown = null) =>
  data({
    ...{ id: "chatcmpl-fake", object: "chat.completion.chunk", created: 1760000000, model: "fake" },
    ...{ service_tier: "default", system_fingerprint: null, choices, usage, obfuscation: "Zk3" },
  });

const choice = (delta: object, finish_reason: string | null = null) => ({
  ...{ index: 0, delta, logprobs: null, finish_reason },
});

/** The citations of texts. It counts characters as Python does, by code points. */
function annotationsOf({ blocks = [] }: Answer): object[] {
  let start_index = 0;
  return blocks.flatMap((block) => {
    if (block.type !== "text") return [];
    const start = start_index;
    start_index += [...block.text].length;
    const place = { start_index: start, end_index: start_index };
    return (block.cites ?? []).map((page) => ({ type: "url_citation", url_citation: { ...place, ...page } }));
  });
}

function frame(moment: Moment, answer: Answer): string[] {
  const { block } = moment;
  if (moment.at === "piece") return [chunk([choice(delta(block, moment.piece, answer))])];
  if (moment.at === "end" || block.type !== "call") return [];
  const { id, name } = block;
  const opened = { index: callIndex(block, answer), id, type: "function", function: { name, arguments: "" } };
  return [chunk([choice({ tool_calls: [opened] })])];
}

function delta(block: Block, piece: string, answer: Answer): object {
  if (block.type === "call")
    return { tool_calls: [{ index: callIndex(block, answer), function: { arguments: piece } }] };
  return block.type === "reasoning" ? { reasoning_content: piece } : { content: piece };
}

function callIndex(block: Block, { blocks = [] }: Answer): number {
  return blocks.filter(({ type }) => type === "call").indexOf(block);
}
