// OpenAI's API: agents as models, for every client of chat completions and of responses. docs/wires/openai.md has the lines
// that connect one.

import type { FastifyReply, FastifyRequest } from "fastify";
import { AppError } from "../../../core/errors.ts";
import { refuse } from "../../errors.ts";
import type { RouteServices } from "../../services.ts";
import type { App } from "../../validation.ts";
import { chatRoutes } from "./chat/index.ts";
import { createConversations } from "./conversations.ts";
import { modelRoutes } from "./models.ts";
import { responseRoutes } from "./responses/index.ts";

export function openaiRoutes(app: App, services: RouteServices): void {
  const conversations = createConversations(services, app.log);
  app.setErrorHandler<Error>((error, request, reply) => sendError(error, request, reply));
  app.setNotFoundHandler((request, reply) => sendError(noRoute(request), request, reply));
  modelRoutes(app, services);
  chatRoutes(app, services, conversations);
  responseRoutes(app, services, conversations);
}

function noRoute({ method, url }: FastifyRequest): AppError {
  const path = pathOf(url);
  const instead = path.startsWith(MESSAGES)
    ? " Anthropic's API is not spoken here: use POST /v1/chat/completions or POST /v1/responses."
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

/** Errors in OpenAI's shape. Its SDKs repeat a POST after 408, 409, 429 and 5xx unless a header forbids it, and so do Anthropic's. */
function sendError(error: Error, request: FastifyRequest, reply: FastifyReply) {
  const problem = refuse(error, request, reply);
  const { status, code, detail, details } = problem;
  if (status === 409) reply.header("x-should-retry", "false");
  // What this API does not have is not found; its clients know no other status for what expired.
  if (status === 410) reply.code(404);
  reply.type("application/json");
  if (isAnthropics(request)) return reply.send(JSON.stringify(anthropicError(problem)));
  const type = TYPES[status] ?? (status >= 500 ? "server_error" : "invalid_request_error");
  const param = typeof details?.param === "string" ? details.param : null;
  const known = typeof details?.code === "string" ? details.code : code;
  return reply.send(JSON.stringify({ error: { message: detail, type, code: known, param } }));
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

/** For clients of Anthropic's API, which find no words in another shape. */
function anthropicError({ status, detail: message, request_id }: ReturnType<typeof refuse>) {
  const type = ANTHROPIC_TYPES[status] ?? (status >= 500 ? "api_error" : "invalid_request_error");
  return { type: "error", error: { type, message }, request_id };
}
