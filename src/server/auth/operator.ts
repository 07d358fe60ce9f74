// Checks who may read data that belongs to no tenant: a principal with the `admin` scope, or Prometheus with its token.

import type { FastifyRequest } from "fastify";
import { hasCode } from "../../agent/core/errors.ts";
import { timingSafeEqualText } from "../../lib/text.ts";
import { type Authenticate, bearerToken } from "./credentials.ts";
import { requireScope } from "./scopes.ts";

/** Throws `unauthorized`, `forbidden`, or `unavailable` if the credentials cannot be verified right now. */
export type RequireOperator = (request: FastifyRequest) => Promise<void>;

export function operators(authenticate: Authenticate, metricsToken: string | undefined): RequireOperator {
  return async (request) => {
    const token = metricsToken === undefined ? undefined : tokenOf(request);
    if (token !== undefined && timingSafeEqualText(token, metricsToken ?? "")) return;
    requireScope(await authenticate(request), "admin");
  };
}

/** Other authentication schemes may use another header, or this header in another form. */
function tokenOf(request: FastifyRequest): string | undefined {
  try {
    return bearerToken(request);
  } catch (error) {
    if (hasCode(error, "unauthorized")) return undefined;
    throw error;
  }
}
