// No authentication: everybody is the same user and may do everything. The server then listens on this machine only,
// and answers nobody who came here under another name.

import type { FastifyRequest } from "fastify";
import { AppError } from "../../core/errors.ts";
import type { Authenticate } from "./credentials.ts";
import { type Principal, Scope } from "./principal.ts";

const EVERYBODY: Principal = { tenant: "default", user: "default", scopes: Scope.options };

export function authenticateNobody(): Authenticate {
  return async () => EVERYBODY;
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i;

/** A web page that gave its own name our address (DNS rebinding) must not reach an open server. */
export async function refuseForeignNames(request: FastifyRequest): Promise<void> {
  const { host } = request.headers;
  if (host === undefined || LOOPBACK.test(host)) return;
  throw new AppError(
    "forbidden",
    "This server has no authentication and answers only to `localhost`. Address it by that name.",
  );
}
