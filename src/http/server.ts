// The HTTP server: one plugin, one error handler, the routes. Listening and signals are the process's business.

import { fastifySSE } from "@fastify/sse";
import fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import { AppError } from "../core/errors.ts";
import { guard } from "./auth/guard.ts";
import { createAuthenticate } from "./auth/index.ts";
import { refuseForeignNames } from "./auth/none.ts";
import { createTickets } from "./auth/tickets.ts";
import { refuseConnection, sendProblem } from "./errors.ts";
import { refuseForeignPages } from "./foreign-pages.ts";
import { browserHeaders } from "./headers.ts";
import { limitRequests } from "./quotas.ts";
import { withoutQueries } from "./request-log.ts";
import { agentRoutes } from "./routes/agents.ts";
import { backendRoutes } from "./routes/backend.ts";
import { docsRoutes } from "./routes/docs.ts";
import { eventRoutes } from "./routes/events.ts";
import { healthRoutes } from "./routes/health.ts";
import { interruptRoutes } from "./routes/interrupts.ts";
import { permissionRoutes } from "./routes/permissions.ts";
import { runRoutes } from "./routes/runs.ts";
import { threadActionRoutes } from "./routes/thread-actions.ts";
import { threadEventRoutes } from "./routes/thread-events.ts";
import { threadRoutes } from "./routes/threads.ts";
import { ticketRoutes } from "./routes/tickets.ts";
import { toolRoutes } from "./routes/tools.ts";
import { usageRoutes } from "./routes/usage.ts";
import type { HttpServices } from "./services.ts";
import { boundAnswers } from "./slow-readers.ts";
import { createStreams } from "./streams.ts";
import { withZod } from "./validation.ts";

export type HttpServer = Awaited<ReturnType<typeof createServer>>;

const ROUTES = [
  healthRoutes,
  agentRoutes,
  threadRoutes,
  threadActionRoutes,
  threadEventRoutes,
  runRoutes,
  interruptRoutes,
  permissionRoutes,
  toolRoutes,
  backendRoutes,
  eventRoutes,
  usageRoutes,
];

/** Does not listen yet. `extend` sees the server before its routes. */
export async function createServer(
  services: HttpServices,
  logger: FastifyBaseLogger,
  extend: (server: ReturnType<typeof bare>) => Promise<void> = async () => {},
) {
  const server = bare(services, logger);
  await extend(server);
  const { auth, apiKeys, origins } = services.access;
  const tickets = createTickets(auth.ticket_secret);
  await browserHeaders(server, origins);
  if (auth.scheme === "none") server.addHook("onRequest", refuseForeignNames);
  server.addHook("onRequest", refuseForeignPages(origins));
  guard(server, createAuthenticate(auth, apiKeys), tickets);
  limitRequests(server, services.quotas);
  boundAnswers(server, services.limits.stallMs);
  // Heartbeats are ours: the plugin's would ignore back-pressure. The data of an event is JSON already.
  await server.register(fastifySSE, { heartbeatInterval: 0, serializer: (data: string) => data });
  const app = withZod(server);
  const streams = createStreams(services.limits, services.quotas);
  server.addHook("preClose", async () => streams.close());
  for (const routes of ROUTES) routes(app, { ...services, streams });
  ticketRoutes(app, tickets);
  docsRoutes(app);
  return server;
}

function bare({ limits }: HttpServices, logger: FastifyBaseLogger) {
  const server = fastify({
    loggerInstance: withoutQueries(logger),
    bodyLimit: limits.bodyBytes,
    // A HEAD route would run an event stream's handler and never end.
    exposeHeadRoutes: false,
    frameworkErrors: sendProblem,
    clientErrorHandler: refuseConnection,
    logController: new LogController({ disableRequestLogging: true }),
    routerOptions: { maxParamLength: 4096 },
  });
  // JSON is all that is understood; a form or a plain text from some web page is not.
  server.removeContentTypeParser("text/plain");
  closeConnections(server);
  server.setErrorHandler<Error>(sendProblem);
  server.setNotFoundHandler((request, reply) =>
    sendProblem(
      new AppError("not_found", `There is no route ${request.method} ${request.url.split("?")[0]}.`),
      request,
      reply,
    ),
  );
  return server;
}

/** How long answers that are under way may take once the server closes. */
const LAST_ANSWERS_MS = 1000;

/**
 * Closing waits for connections: for one whose answer is just ending, until it is idle; for one that never
 * says or takes anything, not at all for ever.
 */
function closeConnections(server: FastifyInstance): void {
  let isClosing = false;
  server.addHook("preClose", async () => {
    isClosing = true;
    setTimeout(() => server.server.closeAllConnections(), LAST_ANSWERS_MS).unref();
  });
  server.addHook("onResponse", async () => {
    if (isClosing) setImmediate(() => server.server.closeIdleConnections());
  });
}
