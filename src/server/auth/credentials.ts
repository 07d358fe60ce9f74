// Reads credentials from headers. A header that was sent more than once is refused.

import type { FastifyRequest } from "fastify";
import { AppError } from "../../agent/core/errors.ts";
import type { Principal } from "./principal.ts";

/**
 * Returns the principal of a request. Throws `unauthorized`, or `unavailable` if the request cannot be verified right
 * now.
 */
export type Authenticate = (request: FastifyRequest) => Promise<Principal>;

export function unauthorized(message: string, cause?: unknown): AppError {
  return new AppError("unauthorized", message, { cause });
}

/** Returns the header's value, or undefined. Throws `unauthorized` if it was sent more than once. */
export function onlyHeader({ raw }: FastifyRequest, name: string): string | undefined {
  // Node joins or drops repeated headers, depending on the header.
  const values: string[] = [];
  for (let at = 0; at < raw.rawHeaders.length; at += 2)
    if (raw.rawHeaders[at]?.toLowerCase() === name) values.push(raw.rawHeaders[at + 1] ?? "");
  if (values.length > 1) throw unauthorized(`The header \`${name}\` was sent ${values.length} times.`);
  return values[0];
}

const BEARER = /^Bearer +([^\s,]+)$/i;

/**
 * Returns true if the `authorization` header uses the scheme `Bearer`. A proxy in front of the server may use another
 * scheme for its own authentication.
 */
export const hasBearer = (request: FastifyRequest): boolean =>
  /^Bearer\b/i.test(onlyHeader(request, "authorization") ?? "");

/** Returns the bearer token, or undefined if there is no header. Throws `unauthorized` for any other content. */
export function bearerToken(request: FastifyRequest): string | undefined {
  const header = onlyHeader(request, "authorization");
  if (header === undefined) return undefined;
  const [, token] = BEARER.exec(header) ?? [];
  if (token === undefined)
    throw unauthorized("The header `authorization` must be `Bearer`, a space and a token.");
  return token;
}
