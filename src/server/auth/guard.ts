// Authenticates and authorizes every request before its body is read, and counts it against the request quota.

import type { FastifyInstance, FastifyRequest } from "fastify";
import { AppError } from "../../agent/core/errors.ts";
import type { Origin } from "../../agent/core/records.ts";
import { parseTraceparent } from "../../agent/core/trace-context.ts";
import type { Quotas } from "../../engine/quotas/index.ts";
import { isTickSpent, sharedTick } from "../../lib/ticks.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Credentials } from "./credential-end.ts";
import { type Authenticate, unauthorized } from "./credentials.ts";
import type { Principal, Scope } from "./principal.ts";
import { accessOf, isOauthPath, type RouteAccess, requireScope } from "./scopes.ts";
import type { Tickets } from "./tickets.ts";

const PRINCIPAL = "principal";

export interface GuardOptions {
  readonly authenticate: Authenticate;
  readonly tickets: Tickets;
  /** Checks whether the credentials behind a ticket have ended. */
  readonly credentials: Pick<Credentials, "endOf">;
}

/** Call this before adding routes. The server does not start if a route is missing from `scopes.ts`. */
export function guard(server: FastifyInstance, { authenticate, tickets, credentials }: GuardOptions): void {
  server.decorateRequest(PRINCIPAL, null);
  server.addHook("onRoute", ({ method, url, config }) => {
    for (const each of [method].flat())
      if (accessOf(each, url, config) === undefined)
        throw new Error(`The route \`${each} ${url}\` ${why(url)}.`);
  });
  server.addHook("onRequest", async (request) => {
    const access = accessTo(request);
    if (access === "public") return;
    const ticket = access === "ticket" ? ticketOf(request) : undefined;
    const principal =
      ticket === undefined ? await authenticate(request) : await ownerOfTicket(ticket, request);
    // Set before the scope check, so the audit trail names refused callers too.
    request.setDecorator(PRINCIPAL, principal);
    // Any authenticated user gets 404 for an unknown route.
    if (access && access !== "any") requireScope(principal, scopeOf(access, principal));
  });

  async function ownerOfTicket(ticket: string, request: FastifyRequest): Promise<Principal> {
    const principal = tickets.verify(ticket, pathOf(request));
    const end = await credentials.endOf(principal);
    if (end) throw end;
    return principal;
  }
}

/** Returns the scope that the principal must have. */
function scopeOf(access: Exclude<RouteAccess, "public" | "any">, { scopes }: Principal): Scope {
  if (access === "ticket") return "read";
  if (access !== "manage") return access;
  return scopes.includes("operator") ? "operator" : "admin";
}

/**
 * Returns the access of the request's route. Returns undefined for an unknown route, unless a missing route at this
 * path needs no credentials.
 */
export function accessTo(request: FastifyRequest): RouteAccess | undefined {
  const { method, routeOptions } = request;
  const isUnknown = routeOptions.url === undefined;
  if (isUnknown && isOauthPath(pathOf(request))) return "public";
  return accessOf(method, routeOptions.url ?? "", routeOptions.config);
}

const why = (url: string) =>
  url.startsWith("/plugins/")
    ? "has a `config.access` that is none of read, run, tools, admin, any, public"
    : "is missing in server/auth/scopes.ts";

/** Returns the authenticated principal. Throws `internal` for a public route. */
export function principalOf(request: FastifyRequest): Principal {
  const principal = request.getDecorator<Principal | null>(PRINCIPAL);
  if (!principal) throw new AppError("internal", "A route read the principal of a public request.");
  return principal;
}

/** Returns false for a public request. */
export const hasPrincipal = (request: FastifyRequest) =>
  Boolean(request.getDecorator<Principal | null>(PRINCIPAL));

/** Returns the owner whose threads, runs and sandboxes the request can see. */
export function ownerOf(request: FastifyRequest): Owner {
  const { tenant, user } = principalOf(request);
  return { tenant, user };
}

/** Returns the origin that is recorded with a run: the API key, the request id and its trace. */
export function sentBy(request: FastifyRequest): { api_key: string | undefined; origin: Origin } {
  const { api_key, isGateway = false, scopes } = principalOf(request);
  const { traceparent } = request.headers;
  const sent = typeof traceparent === "string" && parseTraceparent(traceparent) ? traceparent : undefined;
  // A tenant that chose its trace id could write into another tenant's trace, or decide whether that trace is sampled.
  const mayName = isGateway || scopes.includes("admin");
  const traced = sent === undefined ? {} : mayName ? { traceparent: sent } : { linked: sent };
  return { api_key, origin: { request_id: request.id, ...traced } };
}

/** Returns the tenant for which the server handles the request. All public requests count as one tenant. */
export function tenantOf(request: FastifyRequest): string {
  return request.getDecorator<Principal | null>(PRINCIPAL)?.tenant ?? "";
}

/** The path as the client sent it, without decoding. */
const pathOf = ({ url }: FastifyRequest) => url.split("?", 1)[0] ?? "";

function ticketOf({ query }: FastifyRequest): string | undefined {
  const ticket: unknown = Object(query).ticket;
  if (ticket === undefined || typeof ticket === "string") return ticket;
  throw unauthorized("The query contains several tickets. Send one.");
}

/** Call this after `guard`. Public routes use no quota. */
export function limitRequests(server: FastifyInstance, quotas: Quotas): void {
  server.addHook("onRequest", async (request) => {
    if (accessTo(request) === "public") return;
    await quotas.request(ownerOf(request));
  });
}

/**
 * Call this after `guard`. Spreads simultaneous requests over several ticks of the event loop and alternates between
 * tenants.
 */
export function spreadRequests(server: FastifyInstance): void {
  server.addHook("onRequest", (request, _reply, done) => {
    if (!isTickSpent()) return done();
    sharedTick(tenantOf(request)).then(() => done(), done);
  });
}
