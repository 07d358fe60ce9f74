// The API of the LangGraph Platform: agents as assistants, for `@langchain/langgraph-sdk` and the front ends made with it.
// docs/wires/langgraph.md has the lines that connect one.

import type { FastifyReply, FastifyRequest } from "fastify";
import { AppError } from "../../../core/errors.ts";
import { refuse } from "../../errors.ts";
import type { RouteServices } from "../../services.ts";
import type { App } from "../../validation.ts";
import { assistantRoutes } from "./assistants.ts";
import { protocolRoutes } from "./protocol/index.ts";
import { runRoutes } from "./runs.ts";
import { startRoutes } from "./starts.ts";
import { stateRoutes } from "./state.ts";
import { threadRoutes } from "./threads.ts";

export function langgraphRoutes(app: App, services: RouteServices): void {
  app.setErrorHandler<Error>((error, request, reply) => sendError(error, request, reply));
  app.setNotFoundHandler((request, reply) =>
    sendError(new AppError("not_found", refusalOf(request.url)), request, reply),
  );
  assistantRoutes(app, services);
  threadRoutes(app, services);
  stateRoutes(app, services);
  startRoutes(app, services);
  runRoutes(app, services);
  protocolRoutes(app, services);
}

/** Why there is no such route. */
function refusalOf(url: string): string {
  const [path = ""] = url.split("?");
  if (path.includes("/assistants")) return "Agents are configured by the operator.";
  if (/\/threads\/[^/]+\/runs\/[^/]+$/.test(path)) return "Runs are kept with their thread.";
  return `${path} is not supported.`;
}

/** Errors with the fields that the SDKs read. An invalid request gets status 422 in this API. */
function sendError(error: Error, request: FastifyRequest, reply: FastifyReply) {
  const { code, detail, details } = refuse(error, request, reply);
  if (code === "invalid_request") reply.code(422);
  return reply
    .type("application/json")
    .send(JSON.stringify({ error: code, code, message: detail, detail, ...(details ? { details } : {}) }));
}
