// Refusals in OpenAI's shape, and in Anthropic's shape for its clients.

import type { FastifyRequest } from "fastify";
import { AppError } from "../../agent/core/errors.ts";
import type { RefusalBody, WireErrors } from "../refusals.ts";

function noRoute({ method, url }: FastifyRequest): AppError {
  const path = pathOf(url);
  const instead = path.startsWith(MESSAGES)
    ? " This server does not support Anthropic's API. Use POST /v1/chat/completions or POST /v1/responses."
    : "";
  return new AppError("not_found", `There is no route ${method} ${path}.${instead}`);
}

const MESSAGES = "/v1/messages";
const pathOf = (url: string) => url.split("?", 1)[0] ?? "";

const TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  429: "rate_limit_error",
};

export const ERRORS: WireErrors = {
  bodyOf(refused, request, reply) {
    const { status, code, detail: message, details } = refused;
    // OpenAI's and Anthropic's SDKs retry a POST after 408, 409, 429 and 5xx unless this header forbids it.
    if (status === 409) reply.header("x-should-retry", "false");
    // Clients of this API do not expect 410, so expired resources get 404.
    if (status === 410) reply.code(404);
    if (isAnthropics(request)) return anthropicError(refused);
    const type = TYPES[status] ?? (status >= 500 ? "server_error" : "invalid_request_error");
    const param = paramOf(details);
    const known = typeof details?.code === "string" ? details.code : code;
    return { error: { message, type, code: known, param } };
  },
  noRoute,
};

/** Returns the refused field as OpenAI writes it, for example `input[0].content`, or null. A key of digits is written as a position. */
function paramOf(details: RefusalBody["details"]): string | null {
  if (typeof details?.param === "string") return details.param;
  const [issue] = Array.isArray(details?.issues) ? details.issues : [];
  const path: unknown = issue?.path;
  return typeof path === "string" && path !== "" ? path.replace(/\.(\d+)(?=\.|$)/g, "[$1]") : null;
}

const isAnthropics = ({ headers, url }: FastifyRequest) =>
  headers["anthropic-version"] !== undefined || pathOf(url).startsWith(MESSAGES);

const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  ...TYPES,
  404: "not_found_error",
  410: "not_found_error",
  413: "request_too_large",
  503: "overloaded_error",
};

/** Used for clients of Anthropic's API, which do not show messages in any other shape. */
function anthropicError({ status, detail: message, request_id }: RefusalBody) {
  const type = ANTHROPIC_TYPES[status] ?? (status >= 500 ? "api_error" : "invalid_request_error");
  return { type: "error", error: { type, message }, request_id };
}
