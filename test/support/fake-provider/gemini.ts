// Gemini's side of the wire, at the endpoint that speaks OpenAI's protocol: thoughts as marked text, calls in one piece and
// signed, errors in a list.

import { z } from "zod";
import { seal } from "./anthropic-strict.ts";
import { openaiFault } from "./openai-strict.ts";
import { type Answer, countsOf, type Failure, type Moment, type Stop, stopOf, timeline } from "./script.ts";
import { type Asked, firstFault, type Refusal, shapeFault, type Vendor } from "./vendor.ts";

const FAILURES: Readonly<Record<Failure, readonly [code: number, status: string, message: string]>> = {
  auth: [400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."],
  rate_limit: [429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."],
  quota: [403, "PERMISSION_DENIED", "This API method requires billing to be enabled."],
  overloaded: [503, "UNAVAILABLE", "The model is overloaded. Please try again later."],
  server_error: [500, "INTERNAL", "An internal error has occurred."],
  context_overflow: [
    ...[400, "INVALID_ARGUMENT"],
    "The input token count (1213462) exceeds the maximum number of tokens allowed (1048576).",
  ] as const,
  too_large: [400, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes."],
  not_found: [404, "NOT_FOUND", "models/gemini-none is not found for API version v1main."],
  content_filter: [400, "INVALID_ARGUMENT", "The prompt was blocked: PROHIBITED_CONTENT"],
};

const FINISH: Readonly<Record<Stop, string>> = {
  end_turn: "stop",
  tool_use: "stop",
  max_tokens: "length",
  refusal: "content_filter: SAFETY",
  stop_sequence: "stop",
  pause_turn: "stop",
};

const Extra = z.strictObject({ google: z.strictObject({ thought_signature: z.string().min(1) }) });
const ThinkingConfig = z.strictObject({
  thinking_budget: z.int().optional(),
  thinking_level: z.enum(["low", "medium", "high"]).optional(),
  include_thoughts: z.boolean().optional(),
});
const Call = z.looseObject({
  id: z.string(),
  function: z.looseObject({ name: z.string() }),
  extra_content: Extra.optional(),
});
const Message = z.looseObject({
  role: z.string(),
  tool_calls: z.array(Call).optional(),
  ...Object.fromEntries(
    ["reasoning", "reasoning_content", "reasoning_details"].map((k) => [k, z.never().optional()]),
  ),
});
const Body = z.looseObject({
  model: z.string(),
  messages: z.array(Message),
  tools: z.array(z.unknown()).optional(),
  reasoning_effort: z.string().optional(),
  response_format: z.unknown().optional(),
  extra_body: z
    .strictObject({ google: z.strictObject({ thinking_config: ThinkingConfig.optional() }) })
    .optional(),
});
type Body = z.infer<typeof Body>;

export const gemini: Vendor = {
  name: "gemini",
  // At Google AI Studio, and at Vertex AI.
  path: /^\/(v1beta\/openai|v1\/projects\/acme\/locations\/[a-z\d-]+\/endpoints\/openapi)\/chat\/completions$/,
  refuse(asked) {
    if (!asked.headers.authorization)
      return refusal([400, "INVALID_ARGUMENT", "Missing or invalid Authorization header."]);
    const fault = faultOf(asked);
    return fault === undefined ? undefined : refusal([400, "INVALID_ARGUMENT", fault]);
  },
  fail: (failure, { retrySeconds }) => refusal(FAILURES[failure], detailsOf(failure, retrySeconds)),
  errorFrame(failure) {
    const [code, status, message] = FAILURES[failure];
    return data({ error: { code, message, status } });
  },
  frames(answer) {
    const { input, output, cacheRead } = countsOf(answer);
    const usage = {
      ...{ prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
      prompt_tokens_details: { cached_tokens: cacheRead },
    };
    return [
      chunk({ role: "assistant", content: "" }),
      ...timeline(answer).flatMap((moment) => frame(moment, answer)),
      chunk({ role: "assistant" }, FINISH[stopOf(answer)], usage),
      "data: [DONE]\n\n",
    ];
  },
};

/** The signature of a call: made of its name and id. */
const signatureOf = ({ id, name }: { id: string; name: string }) => seal(`${name}#${id}`);
const SKIP = "skip_thought_signature_validator";

function faultOf(asked: Asked): string | undefined {
  const misshapen = shapeFault(Body, asked.body);
  if (misshapen) return `Invalid JSON payload received. ${misshapen}`;
  const body = Body.parse(asked.body);
  const { extra_body: _, ...rest } = body;
  const messages = body.messages.map(({ tool_calls, ...message }) => ({
    ...message,
    ...(tool_calls ? { tool_calls: tool_calls.map(({ extra_content: _, ...call }) => call) } : {}),
  }));
  return (
    firstFault([thinking, documents, formatOrTools, signatures], body) ??
    openaiFault({ ...asked, body: { ...rest, messages } })
  );
}

function thinking({ model, extra_body, reasoning_effort }: Body) {
  const { thinking_config: config } = extra_body?.google ?? {};
  if (config && reasoning_effort)
    return "Expected one of either `reasoning_effort` or custom `thinking_config`; found both.";
  if (config?.thinking_budget !== undefined && config.thinking_level !== undefined)
    return "You can only set only one of thinking budget and thinking level.";
  return config?.thinking_level && model.startsWith("gemini-2")
    ? "Thinking level is not supported for this model."
    : undefined;
}

const documents = (body: Body) =>
  JSON.stringify(body.messages).includes('"type":"file"') ? "Unsupported content part type: file" : undefined;

const formatOrTools = ({ model, tools, response_format }: Body) =>
  tools && response_format && model.startsWith("gemini-2")
    ? "Function calling with a response mime type: 'application/json' is unsupported"
    : undefined;

/** Of the turn at hand: the first call of each reply must be signed, and no signature may be another call's. */
function signatures({ messages }: Body) {
  const turn = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);
  for (const { tool_calls = [] } of turn)
    for (const [index, { id, function: made, extra_content }] of tool_calls.entries()) {
      const signature = extra_content?.google.thought_signature;
      if (signature === undefined && index === 0)
        return `Function call is missing a thought_signature in functionCall parts. Additional data, function call \`default_api:${made.name}\`.`;
      if (signature !== undefined && signature !== SKIP && signature !== signatureOf({ id, name: made.name }))
        return "Thought signature is not valid.";
    }
  return undefined;
}

function detailsOf(failure: Failure, retrySeconds: number | undefined): object[] {
  const google = "type.googleapis.com/google.rpc";
  if (failure === "auth")
    return [{ "@type": `${google}.ErrorInfo`, reason: "API_KEY_INVALID", domain: "googleapis.com" }];
  return retrySeconds === undefined
    ? []
    : [{ "@type": `${google}.RetryInfo`, retryDelay: `${retrySeconds}s` }];
}

function refusal([code, status, message]: (typeof FAILURES)[Failure], details: object[] = []): Refusal {
  const body = [{ error: { code, message, status, ...(details.length > 0 ? { details } : {}) } }];
  return { status: code, body };
}

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;

const chunk = (delta: object, finish_reason?: string, usage?: object) =>
  data({
    choices: [{ delta, index: 0, ...(finish_reason ? { finish_reason } : {}) }],
    ...{ created: 1760000000, id: "fake", model: "gemini-fake", object: "chat.completion.chunk" },
    ...(usage ? { usage } : {}),
  });

function frame(moment: Moment, answer: Answer): string[] {
  const { at, index, block } = moment;
  if (block.type === "call") {
    if (at !== "start") return [];
    const { id, name, json } = block;
    const calls = (answer.blocks ?? []).filter(({ type }) => type === "call");
    const made = { index: 0, id, type: "function", function: { name, arguments: json } };
    const signed = { extra_content: { google: { thought_signature: signatureOf(block) } } };
    return [chunk({ role: "assistant", tool_calls: [{ ...made, ...(calls[0] === block ? signed : {}) }] })];
  }
  if (block.type === "redacted") return [];
  const isAfterThought = answer.blocks?.[index - 1]?.type === "reasoning" && block.type === "text";
  if (at === "end" || (at === "start" && block.type === "text" && !isAfterThought)) return [];
  const content = at === "piece" ? moment.piece : block.type === "reasoning" ? "<thought>" : "</thought>";
  const marked = block.type === "reasoning" ? { extra_content: { google: { thought: true } } } : {};
  return [chunk({ role: "assistant", content, ...marked })];
}
