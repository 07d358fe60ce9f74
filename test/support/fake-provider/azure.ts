// Azure's side of the wire: OpenAI's, with a deployment and a version in the address, and the filters of content.

import { openai } from "./openai.ts";
import { openaiFault } from "./openai-strict.ts";
import type { Failure } from "./script.ts";
import type { Refusal, Vendor } from "./vendor.ts";

const OVERFLOW =
  "This model's maximum context length is 128000 tokens. However, your messages resulted in 213462 tokens. Please reduce the length of the messages.";

const FAILURES: Readonly<Record<Failure, readonly [status: number, code: string, message: string]>> = {
  auth: [
    ...[401, "401"],
    "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.",
  ] as const,
  rate_limit: [
    ...[429, "429"],
    "Requests to the ChatCompletions_Create Operation under Azure OpenAI API have exceeded token rate limit of your current pricing tier.",
  ] as const,
  quota: [429, "insufficient_quota", "You exceeded your current quota."],
  overloaded: [503, "ServiceUnavailable", "The service is temporarily unable to process your request."],
  server_error: [500, "InternalServerError", "The server had an error while processing your request."],
  context_overflow: [400, "context_length_exceeded", OVERFLOW],
  too_large: [413, "RequestEntityTooLarge", "Request too large."],
  not_found: [
    ...[404, "DeploymentNotFound"],
    "The API deployment for this resource does not exist: gpt-none. If you created the deployment within the last 5 minutes, please wait a moment and try again.",
  ] as const,
  content_filter: [
    ...[400, "content_filter"],
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.",
  ] as const,
};

const VERSION = /^\d{4}-\d{2}-\d{2}(-preview)?$/;
const SAFE = { hate: { filtered: false, severity: "safe" }, jailbreak: { filtered: false, detected: false } };

export const azure: Vendor = {
  name: "azure",
  path: /^\/openai\/deployments\/[^/]+\/chat\/completions(\?|$)/,
  refuse(asked) {
    const { searchParams } = new URL(asked.url, "http://localhost");
    // A token of Entra's is a JWT; a key in its place is refused.
    const isKnown = asked.headers["api-key"] ?? /^Bearer ey/.test(asked.headers.authorization ?? "");
    if (!isKnown) return refusal(...FAILURES.auth);
    if (!VERSION.test(searchParams.get("api-version") ?? ""))
      return { status: 404, body: { error: { code: "404", message: "Resource not found" } } };
    const fault = openaiFault(asked);
    return fault === undefined ? undefined : refusal(400, "BadRequest", fault);
  },
  fail: (failure) => refusal(...FAILURES[failure]),
  errorFrame: (failure) => data({ error: { code: FAILURES[failure][1], message: FAILURES[failure][2] } }),
  frames: (answer, asked) => [
    data({
      ...{ id: "", object: "", created: 0, model: "", choices: [] },
      prompt_filter_results: [{ prompt_index: 0, content_filter_results: SAFE }],
    }),
    ...openai.frames(answer, asked),
  ],
};

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;

function refusal(status: number, code: string, message: string): Refusal {
  const filtered = code === "content_filter" && {
    ...{ param: "prompt", type: null, status },
    innererror: {
      code: "ResponsibleAIPolicyViolation",
      content_filter_result: { violence: { filtered: true, severity: "medium" } },
    },
  };
  return { status, body: { error: { code, message, ...filtered } } };
}
