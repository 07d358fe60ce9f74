// Sends refusals in a wire's format.

import type { FastifyReply, FastifyRequest } from "fastify";
import type { AppError } from "../agent/core/errors.ts";
import { refuse } from "../server/http/errors.ts";
import type { App } from "../server/http/validation.ts";

export type RefusalBody = ReturnType<typeof refuse>;

export interface WireErrors {
  /**
   * Returns the body in the wire's own shape: a string is sent unchanged, an object as JSON. May change the status and
   * the headers.
   */
  readonly bodyOf: (refused: RefusalBody, request: FastifyRequest, reply: FastifyReply) => string | object;
  /** Returns the error for a path without a route. Default: the server's own error. */
  readonly noRoute?: (request: FastifyRequest) => AppError;
}

/** Sends every refusal below the wire's prefix. */
export function answerRefusals(app: App, { bodyOf, noRoute }: WireErrors): void {
  const send = (error: Error, request: FastifyRequest, reply: FastifyReply) => {
    const body = bodyOf(refuse(error, request, reply), request, reply);
    if (typeof body === "string") return reply.type("text/plain; charset=utf-8").send(body);
    return reply.type("application/json").send(JSON.stringify(body));
  };
  app.setErrorHandler<Error>(send);
  if (noRoute) app.setNotFoundHandler((request, reply) => send(noRoute(request), request, reply));
}
