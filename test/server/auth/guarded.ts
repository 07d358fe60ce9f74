// A bare server with a guard, on a real port: what is asked of it is answered with who was let in.

import fastify from "fastify";
import { pino } from "pino";
import { onTestFinished } from "vitest";
import { AppError } from "../../../src/agent/core/errors.ts";
import type { Credentials } from "../../../src/server/auth/credential-end.ts";
import type { Authenticate } from "../../../src/server/auth/credentials.ts";
import { guard, principalOf } from "../../../src/server/auth/guard.ts";
import { createTickets } from "../../../src/server/auth/tickets.ts";
import { sendProblem } from "../../../src/server/http/errors.ts";
import { withoutQueries } from "../../../src/server/http/guarded-server.ts";
import { ticketRoutes } from "../../../src/server/http/routes/operations.ts";
import { withZod } from "../../../src/server/http/validation.ts";
import { ENDLESS_CREDENTIALS } from "../../support/credentials.ts";

export interface GuardedOptions {
  readonly host?: string;
  readonly secret?: string;
  readonly now?: () => number;
  readonly credentials?: Pick<Credentials, "endOf">;
  /** Takes each line that is logged, at every level. */
  readonly log?: (line: string) => void;
}

export interface Guarded {
  readonly url: string;
  readonly port: number;
}

/** Closed when the test has finished. */
export async function guarded(authenticate: Authenticate, options: GuardedOptions = {}): Promise<Guarded> {
  const { host = "127.0.0.1", secret, now, credentials = ENDLESS_CREDENTIALS, log = () => {} } = options;
  const server = fastify({ loggerInstance: withoutQueries(pino({ level: "trace" }, { write: log })) });
  onTestFinished(() => server.close());
  server.setErrorHandler<Error>(sendProblem);
  server.setNotFoundHandler((request, reply) =>
    sendProblem(new AppError("not_found", "There is no such route."), request, reply),
  );
  guard(server, { authenticate, tickets: createTickets(secret, now), credentials });
  server.get("/health", async () => ({ status: "ok" }));
  for (const url of ["/threads/:thread_id", "/events", "/threads/:thread_id/events"])
    server.get(url, async (request) => principalOf(request));
  server.post("/threads", async (request) => principalOf(request));
  ticketRoutes(withZod(server), createTickets(secret, now));
  const address = await server.listen({ host, port: 0 });
  return { url: address, port: Number(new URL(address).port) };
}

/** The answer's status, its header `www-authenticate`, and its body without what says where it is from. */
export async function answerTo(url: string, init: RequestInit = {}) {
  const response = await fetch(url, init);
  const { instance: _, request_id: _id, ...body } = (await response.json()) as Record<string, unknown>;
  return { status: response.status, challenge: response.headers.get("www-authenticate"), body };
}
