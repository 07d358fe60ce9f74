// The HTTP server: its routes and the state that they share. The process listens and handles signals.

import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from "fastify";
import type { EventLoopWatch } from "../../lib/event-loop.ts";
import { createAuthenticate } from "../auth/index.ts";
import { operators } from "../auth/operator.ts";
import { createSignIn } from "../auth/sign-in.ts";
import { createTickets } from "../auth/tickets.ts";
import type { WireName } from "../config/wire-names.ts";
import { limitConnections } from "./connections.ts";
import { refuseOddRequests } from "./errors.ts";
import { bareServer, guarded } from "./guarded-server.ts";
import { roomForBodies } from "./incoming-bodies.ts";
import { createOwnRequests } from "./own-requests.ts";
import { handOn } from "./parts.ts";
import { pluginRoutes } from "./plugin-routes.ts";
import { boundBodies } from "./request-timeout.ts";
import { adminRoutes } from "./routes/admin.ts";
import { adminKeyRoutes } from "./routes/admin-keys.ts";
import { adminUserRoutes } from "./routes/admin-users.ts";
import { agentRoutes } from "./routes/agents.ts";
import { auditRoutes } from "./routes/audit.ts";
import { backendRoutes } from "./routes/backend.ts";
import { branchRoutes } from "./routes/branches.ts";
import { connectionRoutes } from "./routes/connections.ts";
import { eventRoutes, threadEventRoutes } from "./routes/events.ts";
import { feedbackRoutes } from "./routes/feedback.ts";
import { hookRoutes } from "./routes/hooks.ts";
import { interruptRoutes } from "./routes/interrupts.ts";
import { newThreadRunRoutes } from "./routes/new-thread-runs.ts";
import { oauthRoutes } from "./routes/oauth.ts";
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
import { scheduleRoutes } from "./routes/schedules.ts";
import { shareRoutes } from "./routes/shares.ts";
import { threadActionRoutes, threadRoutes } from "./routes/threads.ts";
import { toolRoutes } from "./routes/tools.ts";
import { triggerRoutes } from "./routes/triggers.ts";
import { usageRoutes } from "./routes/usage.ts";
import { webhookRoutes } from "./routes/webhooks.ts";
import type { HttpServices, RouteServices } from "./services.ts";
import { createStreams } from "./sse.ts";
import { UnreadResponses } from "./unread-responses.ts";
import type { App } from "./validation.ts";

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
  feedbackRoutes,
  threadEventRoutes,
  runRoutes,
  newThreadRunRoutes,
  scheduleRoutes,
  interruptRoutes,
  permissionRoutes,
  toolRoutes,
  webhookRoutes,
  connectionRoutes,
  triggerRoutes,
  hookRoutes,
  backendRoutes,
  eventRoutes,
  usageRoutes,
  adminRoutes,
  adminKeyRoutes,
  adminUserRoutes,
  auditRoutes,
];

const OPEN_STREAMS = "openStreams";

/** Returns the number of open event streams of a server. */
export const openStreams = (server: HttpServer): number => server.getDecorator<() => number>(OPEN_STREAMS)();

/** Adds the routes of a wire, with its own error format and body rules. */
export type AddWire = (app: App, services: RouteServices, name: WireName) => Promise<void>;

export interface ServerOptions {
  /**
   * Called for each of the services' wires, either at the first request of a wire or at startup. Default: the server
   * has no wires.
   */
  readonly addWire?: AddWire;
  /** Called with the server, and with each part of it that is created later, before their routes are added. */
  readonly extend?: (server: HttpServer) => Promise<void> | void;
  /** Adds the routes of all wires at startup. Default: the first request to a wire loads it. */
  readonly wiresAtOnce?: boolean;
}

/** Creates a server that does not listen yet. */
export async function createServer(
  services: HttpServices,
  logger: FastifyBaseLogger,
  { extend = () => {}, addWire, wiresAtOnce = false }: ServerOptions = {},
): Promise<HttpServer> {
  const { quotas, limits } = services;
  const { auth, findKey, ownScheme, credentials, metricsToken } = services.access;
  const hasSeveralTenants = auth.scheme !== "none";
  const ownRequests = createOwnRequests();
  const authenticate = ownRequests.before(createAuthenticate(auth, findKey, ownScheme));
  const tickets = createTickets(auth.ticket_secret);
  const guards = { authenticate, tickets, bodies: roomForBodies(limits, hasSeveralTenants) };
  const unreadResponses = new UnreadResponses(limits.unreadBytes, logger);
  const streams = createStreams(limits, { quotas, credentials, unreadResponses, logger }, hasSeveralTenants);
  const requireOperator = operators(authenticate, metricsToken);
  const isOperator = (request: FastifyRequest) =>
    requireOperator(request).then(
      () => true,
      () => false,
    );
  const routeServices = { ...services, streams, unreadResponses, requireOperator, isOperator };

  const server = bareServer(limits, logger);
  boundBodies(server.server, limits.requestMs);
  refuseOddRequests(server.server);
  if (limits.connections) limitConnections(server.server, limits.connections, logger);
  if (addWire && !wiresAtOnce)
    handOn(server, services.wires, async (name) => {
      const part = bareServer(limits, logger);
      await extend(part);
      await addWire(await guarded(part, routeServices, guards, logger), routeServices, name);
      await part.ready();
      return part;
    });
  await extend(server);
  const app = await guarded(server, routeServices, guards, logger);
  server.addHook("preClose", async () => streams.close());
  for (const routes of ROUTES) routes(app, routeServices);
  if (addWire && wiresAtOnce) for (const name of services.wires) await addWire(app, routeServices, name);
  ticketRoutes(app, tickets);
  oauthRoutes(app, services, authenticate);
  docsRoutes(app);
  const signIn = createSignIn(auth);
  signInRoutes(app, signIn);
  pageRoutes(app, services, signIn);
  await pluginRoutes(server, services.pluginRoutes ?? [], ownRequests);
  server.decorate(OPEN_STREAMS, () => streams.open);
  return server;
}

/**
 * Reports to the watch whenever work for a request begins: when the request arrives, when its body is parsed, and when
 * its response is ready.
 */
export function noteRequests(server: HttpServer, watch: Pick<EventLoopWatch, "begins">): void {
  const note = (request: FastifyRequest) =>
    watch.begins(() => `${request.method} ${request.routeOptions.url ?? "(no route)"}`);
  server.addHook("onRequest", async (request) => note(request));
  server.addHook("preParsing", async (request) => note(request));
  server.addHook("preValidation", async (request) => note(request));
  server.addHook("preSerialization", async (request) => note(request));
}
