// Anthropic's side of the wire.

import { citation, pageSeal, textsIn } from "./anthropic-search.ts";
import { anthropicFault, type Body, seal, signature } from "./anthropic-strict.ts";
import { type Answer, type Block, countsOf, type Failure, type Moment, stopOf, timeline } from "./script.ts";
import type { Asked, Refusal, Vendor } from "./vendor.ts";

const FAILURES: Readonly<Record<Failure, readonly [status: number, type: string, message: string]>> = {
  auth: [401, "authentication_error", "invalid x-api-key"],
  rate_limit: [429, "rate_limit_error", "This request would exceed your organization's rate limit."],
  quota: [402, "billing_error", "Your credit balance is too low to access the Anthropic API."],
  overloaded: [529, "overloaded_error", "Overloaded"],
  server_error: [500, "api_error", "Internal server error"],
  context_overflow: [400, "invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum"],
  too_large: [413, "request_too_large", "Request exceeds the maximum size"],
  not_found: [404, "not_found_error", "model: claude-none"],
  content_filter: [400, "invalid_request_error", "Output blocked by content filtering policy"],
};

export const anthropic: Vendor = {
  name: "anthropic",
  path: /\/v1\/messages$/,
  refuse(asked) {
    if (!asked.headers["x-api-key"] && !asked.headers.authorization)
      return refusal(401, "authentication_error", "x-api-key header is required");
    const fault = anthropicFault(asked);
    return fault === undefined ? undefined : refusal(400, "invalid_request_error", fault);
  },
  fail: (failure) => refusal(...FAILURES[failure]),
  errorFrame(failure) {
    const [, type, message] = FAILURES[failure];
    return event("error", { error: { type, message }, request_id: "req_fake" });
  },
  frames(answer, asked) {
    const { input, output, cacheRead, cacheWrite } = countsOf(answer);
    const usage = {
      input_tokens: input - cacheRead - cacheWrite,
      cache_read_input_tokens: cacheRead,
      cache_creation_input_tokens: cacheWrite,
    };
    const message = {
      ...{ id: "msg_fake", type: "message", role: "assistant", model: "claude-fake", content: [] },
      ...{ stop_reason: null, stop_sequence: null, usage: { ...usage, output_tokens: 1 } },
    };
    const [first, ...rest] = timeline(answer);
    return [
      event("message_start", { message }),
      ...(first ? [frame(first, answer, asked)] : []),
      event("ping", {}),
      ...rest.map((moment) => frame(moment, answer, asked)),
      event("message_delta", {
        delta: { stop_reason: stopOf(answer), stop_sequence: null },
        usage: { output_tokens: output, ...searchesIn(answer) },
      }),
      event("message_stop", {}),
    ];
  },
};

function refusal(status: number, type: string, message: string): Refusal {
  return { status, body: { type: "error", error: { type, message }, request_id: "req_fake" } };
}

const event = (type: string, fields: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

function searchesIn({ blocks = [] }: Answer) {
  const made = blocks.filter((block) => block.type === "results" && !("error" in block.pages)).length;
  return made > 0 ? { server_tool_use: { web_search_requests: made, web_fetch_requests: 0 } } : {};
}

function frame(moment: Moment, answer: Answer, asked: Asked): string {
  const { index, block } = moment;
  switch (moment.at) {
    case "start":
      return event("content_block_start", { index, content_block: opened(moment, answer, asked) });
    case "piece":
      return event("content_block_delta", { index, delta: delta(block, moment.piece) });
    case "end":
      return cites(moment) + signed(moment, asked) + event("content_block_stop", { index });
  }
}

function opened({ index, block }: Moment, { blocks = [] }: Answer, { body }: Asked): object {
  switch (block.type) {
    case "text":
      return { type: "text", text: "" };
    case "reasoning":
      return { type: "thinking", thinking: "", signature: "" };
    case "redacted":
      return { type: "redacted_thinking", data: seal("redacted") };
    case "call":
      return { type: "tool_use", id: block.id, name: block.name, input: {} };
    case "search":
      return { type: "server_tool_use", id: block.id, name: "web_search", input: {}, caller: DIRECT };
    case "results": {
      const { messages } = body as Body;
      const last = messages.at(-1);
      const paused = last?.role === "assistant" ? last.content : [];
      const before = textsIn([...paused, ...blocks.slice(0, index)]);
      const content =
        "error" in block.pages
          ? { type: "web_search_tool_result_error", error_code: block.pages.error }
          : block.pages.map((page) => ({
              ...{ type: "web_search_result", ...page, page_age: null },
              encrypted_content: pageSeal(page, before),
            }));
      return { type: "web_search_tool_result", tool_use_id: block.id, content, caller: DIRECT };
    }
  }
}

const DIRECT = { type: "direct" };

function delta(block: Block, piece: string): object {
  if (block.type === "call" || block.type === "search")
    return { type: "input_json_delta", partial_json: piece };
  if (block.type === "reasoning") return { type: "thinking_delta", thinking: piece };
  return { type: "text_delta", text: piece };
}

function cites({ index, block }: Moment): string {
  if (block.type !== "text") return "";
  const deltas = (block.cites ?? []).map((page) => ({ type: "citations_delta", citation: citation(page) }));
  return deltas.map((delta) => event("content_block_delta", { index, delta })).join("");
}

function signed({ index, block }: Moment, { body }: Asked): string {
  if (block.type !== "reasoning") return "";
  // The server asks for frames only after the strict checks, which proved the shape.
  const delta = { type: "signature_delta", signature: signature(block.text, body as Body) };
  return event("content_block_delta", { index, delta });
}
