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
  app.setNotFoundHandler((request, reply) =>
    sendError(
      new AppError("not_found", `There is no route ${request.method} ${request.url.split("?")[0]}.`),
      request,
      reply,
    ),
  );
  modelRoutes(app, services);
  chatRoutes(app, services, conversations);
  responseRoutes(app, services, conversations);
}

const TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  429: "rate_limit_error",
};

/** Errors in OpenAI's shape. Its SDKs repeat a POST after 408, 409, 429 and 5xx unless a header forbids it. */
function sendError(error: Error, request: FastifyRequest, reply: FastifyReply) {
  const { status, code, detail, details } = refuse(error, request, reply);
  if (status === 409) reply.header("x-should-retry", "false");
  // What this API does not have is not found; its clients know no other status for what expired.
  if (status === 410) reply.code(404);
  const type = TYPES[status] ?? (status >= 500 ? "server_error" : "invalid_request_error");
  const param = typeof details?.param === "string" ? details.param : null;
  const known = typeof details?.code === "string" ? details.code : code;
  return reply
    .type("application/json")
    .send(JSON.stringify({ error: { message: detail, type, code: known, param } }));
}
