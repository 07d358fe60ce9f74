// Authenticates and authorises every request before its body is read, and counts it against the request quota.

import type { FastifyInstance, FastifyRequest } from "fastify";
import { AppError } from "../../core/errors.ts";
import type { Owner } from "../../core/ids.ts";
import type { Quotas } from "../../quotas/index.ts";
import type { Credentials } from "./credential-end.ts";
import { type Authenticate, unauthorized } from "./credentials.ts";
import type { Principal } from "./principal.ts";
import { accessOf, requireScope } from "./scopes.ts";
import type { Tickets } from "./tickets.ts";

const PRINCIPAL = "principal";

export interface Guarding {
  readonly authenticate: Authenticate;
  readonly tickets: Tickets;
  /** Tells whether a ticket's own credentials have ended. */
  readonly credentials: Pick<Credentials, "endOf">;
}

/** Call it before any route is added: a route that `scopes.ts` does not list keeps the server from starting. */
export function guard(server: FastifyInstance, { authenticate, tickets, credentials }: Guarding): void {
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
      ticket === undefined ? await authenticate(request) : await ownerOfTicket(ticket, request);
    // An unknown route answers 404 to any authenticated user.
    if (access) requireScope(principal, access === "stream" ? "read" : access);
    request.setDecorator(PRINCIPAL, principal);
  });

  async function ownerOfTicket(ticket: string, request: FastifyRequest): Promise<Principal> {
    const principal = tickets.verify(ticket, pathOf(request));
    const end = await credentials.endOf(principal);
    if (end) throw end;
    return principal;
  }
}

/** The authenticated principal. For routes that are not public. */
export function principalOf(request: FastifyRequest): Principal {
  const principal = request.getDecorator<Principal | null>(PRINCIPAL);
  if (!principal) throw new AppError("internal", "A route read the principal of a public request.");
  return principal;
}

/** The owner whose threads, runs and sandboxes the request can see. */
export function ownerOf(request: FastifyRequest): Owner {
  const { tenant, user } = principalOf(request);
  return { tenant, user };
}

/** The path as sent, undecoded. */
const pathOf = ({ url }: FastifyRequest) => url.split("?", 1)[0] ?? "";

function ticketOf({ query }: FastifyRequest): string | undefined {
  const ticket: unknown = Object(query).ticket;
  if (ticket === undefined || typeof ticket === "string") return ticket;
  throw unauthorized("Send one ticket.");
}

/** Call it after `guard`. Public routes cost no quota. */
export function limitRequests(server: FastifyInstance, quotas: Quotas): void {
  server.addHook("onRequest", async (request) => {
    if (accessOf(request.method, request.routeOptions.url ?? "") === "public") return;
    await quotas.request(ownerOf(request));
  });
}
