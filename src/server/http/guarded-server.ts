// A Fastify server with everything that all routes share: guards, limits, headers, and the error format. There is one
// for the server's own routes and one for each loaded wire. They share their counters.

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
import { AppError } from "../../agent/core/errors.ts";
import { tellOfLack } from "../../engine/runs/logging.ts";
import { randomId } from "../../lib/random-id.ts";
import { checksHosts } from "../auth/config.ts";
import type { Authenticate } from "../auth/credentials.ts";
import { guard, hasPrincipal, limitRequests, ownerOf, spreadRequests } from "../auth/guard.ts";
import { isOauthPath, routesAt } from "../auth/scopes.ts";
import type { Tickets } from "../auth/tickets.ts";
import { withoutNeedlessSlashes } from "../config/wire-names.ts";
import { auditRequests } from "./audit-hook.ts";
import {
  browserHeaders,
  forbidCaching,
  refuseCrossSiteWrites,
  refuseForeignHosts,
  refuseTwoHosts,
} from "./browser-security.ts";
import { cutStalledResponses } from "./client-disconnect.ts";
import { refuseConnection, sendProblem } from "./errors.ts";
import { boundIncomingBodies, type RoomForBodies } from "./incoming-bodies.ts";
import { readJsonBodies } from "./json-body.ts";
import { endLongAnswers } from "./long-responses.ts";
import { headTimeout } from "./request-timeout.ts";
import type { HttpLimits, RouteServices } from "./services.ts";
import { type App, withZod } from "./validation.ts";

export interface Guards {
  readonly authenticate: Authenticate;
  readonly tickets: Tickets;
  readonly bodies: RoomForBodies;
}

/** Adds guards, limits and headers to a bare server. Call this before adding routes. */
export async function guarded(
  server: FastifyInstance,
  { access, limits, quotas, unreadResponses, audit }: RouteServices,
  { authenticate, tickets, bodies }: Guards,
  logger: FastifyBaseLogger,
): Promise<App> {
  const { auth, credentials, origins, publicUrl } = access;
  server.addHook("onRequest", sendRequestId);
  server.addHook("onRequest", refuseTwoHosts);
  reportLacks(server, logger);
  server.addHook("onRequest", forbidCaching);
  await browserHeaders(server, origins);
  // Pages of other origins may read the refusals.
  closeConnections(server);
  if (checksHosts(auth)) server.addHook("onRequest", refuseForeignHosts({ hosts: auth.hosts, publicUrl }));
  const { trusted_proxies: trustedProxies } = auth;
  server.addHook("onRequest", refuseCrossSiteWrites({ origins, publicUrl, trustedProxies }));
  guard(server, { authenticate, tickets, credentials });
  auditRequests(server, audit, trustedProxies);
  spreadRequests(server);
  limitRequests(server, quotas);
  boundIncomingBodies(server, bodies);
  cutStalledResponses(server, limits.stallMs, unreadResponses);
  endLongAnswers(server, credentials);
  // The plugin's heartbeats would ignore back-pressure, so sse.ts sends its own. Event data is already JSON.
  await server.register(fastifySSE, { heartbeatInterval: 0, serializer: (data: string) => data });
  return withZod(server);
}

/** Replaces Fastify's own compilers, which would otherwise be loaded: `withZod` sets the compilers of every route. */
function onlyZod(): never {
  throw new Error("A route has a schema before the server has zod's compilers.");
}

/** Creates a server without routes or guards. */
export function bareServer(limits: HttpLimits, logger: FastifyBaseLogger): FastifyInstance {
  const server = fastify({
    // Node would respond to these requests without a body; `refuseTwoHosts` responds with a body.
    http: { ...headTimeout(limits.requestMs), requireHostHeader: false },
    // `closeConnections` refuses requests during shutdown, with Skein's own error.
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
  server.addHook("onRoute", ({ method, url, sse }) => {
    if (method === "HEAD" && sse)
      throw new Error(`An answer to \`HEAD ${url}\`, an event stream, would never end.`);
  });
  // Only JSON is accepted, because a page of another site can send forms and plain text without a preflight request.
  server.removeContentTypeParser("text/plain");
  readJsonBodies(server, { maxEntries: limits.bodyEntries });
  server.setErrorHandler<Error>(sendProblem);
  server.setNotFoundHandler((request, reply) => {
    const [path = ""] = request.url.split("?");
    // A disabled wire has no routes.
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
      `There is no route ${method} ${path}: this server has no OAuth server. Send a key or token in \`Authorization: Bearer …\`.`,
    );
  if (allow.length === 0) return new AppError("not_found", `There is no route ${method} ${path}.`);
  return new AppError("method_not_allowed", `${path} accepts ${allow.join(", ")}, not ${method}.`);
}

/** Logs requests that fail because the machine has run out of a resource, in the same format as for runs. */
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

/** The maximum time for responses in progress once the server closes, in ms. */
const LAST_ANSWERS_MS = 1000;

/** On shutdown, refuses new requests, waits for responses in progress, then closes idle and unresponsive connections. */
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

/** Logs only the method and path of a request, because a query may contain a ticket and a header may contain a secret. */
export function withoutQueries(logger: FastifyBaseLogger): FastifyBaseLogger {
  const req = ({ method, url = "" }: FastifyRequest) => ({ method, path: url.split("?", 1)[0] });
  return logger.child({}, { serializers: { req } });
}

const REQUEST_ID = "x-request-id";
/** ids in any other format are replaced, because ids are written to logs. */
const ACCEPTED_ID = /^[\w.-]{1,64}$/;

/**
 * Every request has an id, which its caller sends or the server creates. The id is in the response, and in the log
 * lines of the request and of the runs that it starts.
 */
const requestIds: Pick<FastifyServerOptions, "genReqId" | "logController"> = {
  genReqId({ headers }) {
    const sent = headers[REQUEST_ID];
    return typeof sent === "string" && ACCEPTED_ID.test(sent) ? sent : `req_${randomId()}`;
  },
  logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: "request_id" }),
};

/** Runs as the first hook, so refusals have the id too. */
async function sendRequestId(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  reply.header(REQUEST_ID, request.id);
}
