// The HTTP server: one plugin, one error handler, the routes. Listening and signals are the process's business.

import { fastifySSE } from "@fastify/sse";
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  type HTTPMethods,
  LogController,
} from "fastify";
import { AppError } from "../core/errors.ts";
import type { EventLoopWatch } from "../lib/event-loop.ts";
import { randomId } from "../lib/random-id.ts";
import { tellOfLack } from "../runs/logging.ts";
import { checksHosts } from "./auth/config.ts";
import { guard, hasPrincipal, limitRequests, ownerOf, spreadRequests } from "./auth/guard.ts";
import { createAuthenticate } from "./auth/index.ts";
import { operators } from "./auth/operator.ts";
import { isOauthPath, routesAt } from "./auth/scopes.ts";
import { createSignIn } from "./auth/sign-in.ts";
import { createTickets } from "./auth/tickets.ts";
import {
  browserHeaders,
  forbidCaching,
  refuseCrossSiteWrites,
  refuseForeignHosts,
  refuseTwoHosts,
} from "./browser-security.ts";
import { cutStalledAnswers } from "./client-disconnect.ts";
import { limitConnections } from "./connections.ts";
import { refuseConnection, refuseOddRequests, sendProblem } from "./errors.ts";
import { boundIncomingBodies } from "./incoming-bodies.ts";
import { readJsonBodies } from "./json-body.ts";
import { endLongAnswers } from "./long-answers.ts";
import { pluginRoutes } from "./plugin-routes.ts";
import { boundBodies, headTimeout } from "./request-timeout.ts";
import { adminRoutes } from "./routes/admin.ts";
import { adminKeyRoutes } from "./routes/admin-keys.ts";
import { adminUserRoutes } from "./routes/admin-users.ts";
import { agentRoutes } from "./routes/agents.ts";
import { backendRoutes } from "./routes/backend.ts";
import { branchRoutes } from "./routes/branches.ts";
import { eventRoutes, threadEventRoutes } from "./routes/events.ts";
import { interruptRoutes } from "./routes/interrupts.ts";
import {
  docsRoutes,
  healthRoutes,
  meRoutes,
  metricsRoutes,
  signInRoutes,
  ticketRoutes,
} from "./routes/operations.ts";
import { pageRoutes } from "./routes/page.ts";
import { permissionRoutes } from "./routes/permissions.ts";
import { runRoutes } from "./routes/runs.ts";
import { shareRoutes } from "./routes/shares.ts";
import { threadActionRoutes, threadRoutes } from "./routes/threads.ts";
import { toolRoutes } from "./routes/tools.ts";
import { usageRoutes } from "./routes/usage.ts";
import type { HttpServices } from "./services.ts";
import { createStreams } from "./sse.ts";
import { UnreadAnswers } from "./unread-answers.ts";
import { withZod } from "./validation.ts";
import { wireRoutes } from "./wires/index.ts";
import { withoutNeedlessSlashes } from "./wires/names.ts";

export type HttpServer = FastifyInstance;

const ROUTES = [
  healthRoutes,
  metricsRoutes,
  meRoutes,
  agentRoutes,
  threadRoutes,
  threadActionRoutes,
  branchRoutes,
  shareRoutes,
  threadEventRoutes,
  runRoutes,
  interruptRoutes,
  permissionRoutes,
  toolRoutes,
  backendRoutes,
  eventRoutes,
  usageRoutes,
  adminRoutes,
  adminKeyRoutes,
  adminUserRoutes,
];

const OPEN_STREAMS = "openStreams";

/** How many event streams a server has open. */
export const openStreams = (server: HttpServer): number => server.getDecorator<() => number>(OPEN_STREAMS)();

/** Does not listen yet. `extend` gets the server before its routes are added. */
export async function createServer(
  services: HttpServices,
  logger: FastifyBaseLogger,
  extend: (server: HttpServer) => Promise<void> = async () => {},
): Promise<HttpServer> {
  const server = bare(services, logger);
  await extend(server);
  const { auth, findKey, ownScheme, credentials, origins, publicUrl, metricsToken } = services.access;
  const tickets = createTickets(auth.ticket_secret);
  reportLacks(server, logger);
  server.addHook("onRequest", forbidCaching);
  await browserHeaders(server, origins);
  // Pages of other origins may read the refusals.
  closeConnections(server);
  if (checksHosts(auth)) server.addHook("onRequest", refuseForeignHosts({ hosts: auth.hosts, publicUrl }));
  const { trusted_proxies: trustedProxies } = auth;
  server.addHook("onRequest", refuseCrossSiteWrites({ origins, publicUrl, trustedProxies }));
  const authenticate = createAuthenticate(auth, findKey, ownScheme);
  guard(server, { authenticate, tickets, credentials });
  spreadRequests(server);
  const requireOperator = operators(authenticate, metricsToken);
  const isOperator = (request: FastifyRequest) =>
    requireOperator(request).then(
      () => true,
      () => false,
    );
  limitRequests(server, services.quotas);
  const hasSeveralTenants = auth.scheme !== "none";
  boundIncomingBodies(server, services.limits, hasSeveralTenants);
  const unreadAnswers = new UnreadAnswers(services.limits.unreadBytes, logger);
  cutStalledAnswers(server, services.limits.stallMs, unreadAnswers);
  endLongAnswers(server, credentials);
  // The plugin's heartbeats would ignore back-pressure, so sse.ts sends its own. Event data is already JSON.
  await server.register(fastifySSE, { heartbeatInterval: 0, serializer: (data: string) => data });
  const app = withZod(server);
  const streams = createStreams(
    services.limits,
    { quotas: services.quotas, credentials, unreadAnswers, logger },
    hasSeveralTenants,
  );
  server.addHook("preClose", async () => streams.close());
  const routeServices = { ...services, streams, unreadAnswers, requireOperator, isOperator };
  for (const routes of ROUTES) routes(app, routeServices);
  await wireRoutes(app, routeServices, services.wires);
  ticketRoutes(app, tickets);
  docsRoutes(app);
  const signIn = createSignIn(auth);
  signInRoutes(app, signIn);
  pageRoutes(app, services, signIn);
  await pluginRoutes(server, services.pluginRoutes ?? []);
  server.decorate(OPEN_STREAMS, () => streams.open);
  return server;
}

/** In place of Fastify's own compilers, which it would load: `withZod` sets those of every route. */
function onlyZod(): never {
  throw new Error("A route has a schema before the server has zod's compilers.");
}

function bare({ limits }: HttpServices, logger: FastifyBaseLogger) {
  const server = fastify({
    // Node answers what is refused here without a body: `refuseTwoHosts` does it.
    http: { ...headTimeout(limits.requestMs), requireHostHeader: false },
    // The same: `closeConnections` does it.
    return503OnClosing: false,
    loggerInstance: withoutQueries(logger),
    bodyLimit: limits.bodyBytes,
    exposeHeadRoutes: true,
    rewriteUrl: ({ url = "/" }) => withoutNeedlessSlashes(url),
    frameworkErrors: sendProblem,
    clientErrorHandler: refuseConnection,
    routerOptions: { maxParamLength: 4096 },
    schemaController: { compilersFactory: { buildValidator: onlyZod, buildSerializer: onlyZod } },
    ...requestIds,
  });
  server.addHook("onRequest", sendRequestId);
  server.addHook("onRequest", refuseTwoHosts);
  server.addHook("onRoute", ({ method, url, sse }) => {
    if (method === "HEAD" && sse)
      throw new Error(`An answer to \`HEAD ${url}\`, an event stream, would never end.`);
  });
  // JSON only: a page of another site can send forms and plain text without asking.
  server.removeContentTypeParser("text/plain");
  readJsonBodies(server, { maxEntries: limits.bodyEntries });
  boundBodies(server.server, limits.requestMs);
  refuseOddRequests(server.server);
  if (limits.connections) limitConnections(server.server, limits.connections, logger);
  server.setErrorHandler<Error>(sendProblem);
  server.setNotFoundHandler((request, reply) => {
    const [path = ""] = request.url.split("?");
    // A wire that is off has no routes.
    const routes = routesAt(path).filter(({ method, url }) =>
      server.hasRoute({ method: method as HTTPMethods, url }),
    );
    const allow = routes.map(({ method }) => method);
    if (allow.length > 0) reply.header("allow", allow.join(", "));
    return sendProblem(noRoute(request.method, path, allow), request, reply);
  });
  return server;
}

function noRoute(method: string, path: string, allow: readonly string[]): AppError {
  if (allow.length === 0 && isOauthPath(path))
    return new AppError(
      "not_found",
      `There is no route ${method} ${path}: no OAuth server belongs to this one. Send a key or token in \`Authorization: Bearer …\`.`,
    );
  if (allow.length === 0) return new AppError("not_found", `There is no route ${method} ${path}.`);
  return new AppError("method_not_allowed", `${path} takes ${allow.join(", ")}, not ${method}.`);
}

/** Logs requests that fail because the machine has run out of something, in the lines that calls of runs have. */
function reportLacks(server: FastifyInstance, logger: FastifyBaseLogger): void {
  server.addHook("onError", async (request, _reply, error) => {
    const route = `${request.method} ${request.routeOptions.url}`;
    tellOfLack(logger, error, {
      request_id: request.id,
      route,
      ...(hasPrincipal(request) ? ownerOf(request) : {}),
    });
  });
}

/** How long answers in progress may take once the server closes, in ms. */
const LAST_ANSWERS_MS = 1000;

/** On shutdown, refuses new requests, lets answers in progress finish, then closes idle and unresponsive connections. */
function closeConnections(server: FastifyInstance): void {
  let isClosing = false;
  server.addHook("onRequest", (_request, _reply, next) =>
    next(isClosing ? new AppError("shutting_down", "The server is shutting down. Try again.") : undefined),
  );
  server.addHook("preClose", async () => {
    isClosing = true;
    setTimeout(() => server.server.closeAllConnections(), LAST_ANSWERS_MS).unref();
  });
  server.addHook("onResponse", async () => {
    if (isClosing) setImmediate(() => server.server.closeIdleConnections());
  });
}

/** Tells the watch whenever work for a request begins: it has come, its body is parsed, its answer is made. */
export function noteRequests(server: HttpServer, watch: Pick<EventLoopWatch, "begins">): void {
  const note = (request: FastifyRequest) =>
    watch.begins(() => `${request.method} ${request.routeOptions.url ?? "(no route)"}`);
  server.addHook("onRequest", async (request) => note(request));
  server.addHook("preParsing", async (request) => note(request));
  server.addHook("preValidation", async (request) => note(request));
  server.addHook("preSerialization", async (request) => note(request));
}

/** Logs method and path of requests only: a query may hold a ticket, a header a secret. */
export function withoutQueries(logger: FastifyBaseLogger): FastifyBaseLogger {
  const req = ({ method, url = "" }: FastifyRequest) => ({ method, path: url.split("?", 1)[0] });
  return logger.child({}, { serializers: { req } });
}

const REQUEST_ID = "x-request-id";
/** Another one is replaced: ids are written to logs. */
const ACCEPTED_ID = /^[\w.-]{1,64}$/;

/**
 * Each request has an id, its caller's or one made here: in the answer, in the lines that the log has of it and in those of
 * the runs that it starts.
 */
const requestIds: Pick<FastifyServerOptions, "genReqId" | "logController"> = {
  genReqId({ headers }) {
    const sent = headers[REQUEST_ID];
    return typeof sent === "string" && ACCEPTED_ID.test(sent) ? sent : `req_${randomId()}`;
  },
  logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: "request_id" }),
};

/** As a first hook, so that refusals have it too. */
async function sendRequestId(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  reply.header(REQUEST_ID, request.id);
}
