// The fake provider's output in each vendor's format, in frames of the same size as the vendor's.

export interface Wire {
  readonly opening: string;
  /** Returns one token. `text` needs no escaping. */
  delta(text: string): string;
  /** Returns a whole answer that calls `write_todos`, for the `n`-th time. */
  call(n: number): string;
  closing(tokens: number): string;
  /** A text that occurs in a request only with a tool's result. */
  readonly result: string;
}

const argsOf = (n: number) =>
  JSON.stringify({ todos: [{ id: "1", title: `Step ${n}`, status: "in_progress" }] });

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;

const chunk = (choices: readonly unknown[], usage: unknown = null) =>
  data({
    ...{
      id: "chatcmpl-BENCHbenchBENCHbenchBENCHbench",
      object: "chat.completion.chunk",
      created: 1760000000,
    },
    ...{ model: "fake", service_tier: "default", system_fingerprint: "fp_0123456789", choices, usage },
  });
const choice = (delta: object, finish_reason: string | null = null) =>
  chunk([{ index: 0, delta, logprobs: null, finish_reason }]);
const end = (reason: string, tokens: number) =>
  choice({}, reason) +
  chunk([], { prompt_tokens: 100, completion_tokens: tokens, total_tokens: 100 + tokens }) +
  "data: [DONE]\n\n";

const [beforeToken = "", afterToken = ""] = choice({ content: "|" }).split("|");
const opening = choice({ role: "assistant", content: "", refusal: null });

const openai: Wire = {
  opening,
  delta: (text) => beforeToken + text + afterToken,
  call: (n) => {
    const named = {
      index: 0,
      id: `call_${n}`,
      type: "function",
      function: { name: "write_todos", arguments: "" },
    };
    const args = { index: 0, function: { arguments: argsOf(n) } };
    return opening + choice({ tool_calls: [named] }) + choice({ tool_calls: [args] }) + end("tool_calls", 20);
  },
  closing: (tokens) => end("stop", tokens),
  result: '"role":"tool"',
};

const event = (type: string, fields: object) => `event: ${type}\n${data({ type, ...fields })}`;
const message = event("message_start", {
  message: {
    ...{ id: "msg_01BENCHbenchBENCHbenchBE", type: "message", role: "assistant", model: "fake", content: [] },
    ...{ stop_reason: null, stop_sequence: null, usage: { input_tokens: 100, output_tokens: 1 } },
  },
});
const block = (content_block: object) => event("content_block_start", { index: 0, content_block });
const delta = (part: object) => event("content_block_delta", { index: 0, delta: part });
const stop = (stop_reason: string, output_tokens: number) =>
  event("content_block_stop", { index: 0 }) +
  event("message_delta", { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens } }) +
  event("message_stop", {});

const [beforeText = "", afterText = ""] = delta({ type: "text_delta", text: "|" }).split("|");

const anthropic: Wire = {
  opening: message + block({ type: "text", text: "" }),
  delta: (text) => beforeText + text + afterText,
  call: (n) =>
    message +
    block({ type: "tool_use", id: `toolu_${n}`, name: "write_todos", input: {} }) +
    delta({ type: "input_json_delta", partial_json: argsOf(n) }) +
    stop("tool_use", 20),
  closing: (tokens) => stop("end_turn", tokens),
  result: '"type":"tool_result"',
};

export const wireOf = (path: string) => (path.endsWith("/messages") ? anthropic : openai);
