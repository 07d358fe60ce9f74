// Nothing reaches a route but by way of here: every request has a principal that may do what the route does, or ends,
// before its body is read.

import type { FastifyInstance, FastifyRequest } from "fastify";
import { AppError } from "../../core/errors.ts";
import type { Owner } from "../../core/ids.ts";
import type { Quotas } from "../../quotas/index.ts";
import { type Authenticate, unauthorized } from "./credentials.ts";
import type { Principal } from "./principal.ts";
import { accessOf, requireScope } from "./scopes.ts";
import type { Tickets } from "./tickets.ts";

const PRINCIPAL = "principal";

/** To be called before any route is added: one that `scopes.ts` does not know is refused, and the server with it. */
export function guard(server: FastifyInstance, authenticate: Authenticate, tickets: Tickets): void {
  server.decorateRequest(PRINCIPAL, null);
  server.addHook("onRoute", ({ method, url }) => {
    for (const each of [method].flat())
      if (accessOf(each, url) === undefined)
        throw new Error(`The route \`${each} ${url}\` is missing in http/auth/scopes.ts.`);
  });
  server.addHook("onRequest", async (request) => {
    const access = accessOf(request.method, request.routeOptions.url ?? "");
    if (access === "public") return;
    const ticket = access === "stream" ? ticketOf(request) : undefined;
    const principal =
      ticket === undefined ? await authenticate(request) : tickets.verify(ticket, pathOf(request));
    // Where there is no route whoever is known may learn that.
    if (access) requireScope(principal, access === "stream" ? "read" : access);
    request.setDecorator(PRINCIPAL, principal);
  });
}

/** Who sends the request. For routes that are not public. */
export function principalOf(request: FastifyRequest): Principal {
  const principal = request.getDecorator<Principal | null>(PRINCIPAL);
  if (!principal) throw new AppError("internal", "A request without a principal has reached a route.");
  return principal;
}

/** Whose things the request is about. */
export function ownerOf(request: FastifyRequest): Owner {
  const { tenant, user } = principalOf(request);
  return { tenant, user };
}

/** As it was sent. */
const pathOf = ({ url }: FastifyRequest) => url.split("?", 1)[0] ?? "";

function ticketOf({ query }: FastifyRequest): string | undefined {
  const ticket: unknown = Object(query).ticket;
  if (ticket === undefined || typeof ticket === "string") return ticket;
  throw unauthorized("Send one ticket.");
}

/** To be called after `guard`: who is not known has no quota, and public routes cost none. */
export function limitRequests(server: FastifyInstance, quotas: Quotas): void {
  server.addHook("onRequest", async (request) => {
    if (accessOf(request.method, request.routeOptions.url ?? "") === "public") return;
    await quotas.request(ownerOf(request));
  });
}
