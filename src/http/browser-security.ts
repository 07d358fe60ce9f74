// Protects users in a browser: security headers and CORS on every answer, no cross-site writes (CSRF), no foreign Host header
// (DNS rebinding).

import fastifyCors from "@fastify/cors";
import fastifyHelmet from "@fastify/helmet";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { AppError } from "../core/errors.ts";

/** The only inline script: it starts the API reference. */
const START_SCRIPT = "'sha256-NCQbzLgoN9vkyXZ+rs8V6od5d6P4kEJ5UATVWEcMHGM='";

/** For our own pages. Swagger UI sets styles on its elements and draws with `data:` images. */
const CONTENT_POLICY = {
  "default-src": ["'self'"],
  "script-src": ["'self'", START_SCRIPT],
  "script-src-attr": ["'none'"],
  "style-src": ["'self'", "'unsafe-inline'"],
  "img-src": ["'self'", "data:"],
  "object-src": ["'none'"],
  "base-uri": ["'none'"],
  "form-action": ["'self'"],
  "frame-ancestors": ["'none'"],
};

/** How long browsers may cache a preflight answer, in s. */
const PREFLIGHT_AGE_S = 600;

/** Call it before any hook that may refuse a request, so that pages can read the refusal. */
export async function browserHeaders(server: FastifyInstance, origins: readonly string[]): Promise<void> {
  await server.register(fastifyHelmet, {
    contentSecurityPolicy: { useDefaults: false, directives: CONTENT_POLICY },
    frameguard: { action: "deny" },
    // The proxy that terminates TLS decides this.
    strictTransportSecurity: false,
  });
  if (origins.length === 0) return;
  await server.register(fastifyCors, {
    origin: [...origins],
    methods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
    allowedHeaders: [
      "Authorization",
      "Content-Type",
      "Idempotency-Key",
      "Last-Event-ID",
      "Range",
      "X-API-Key",
    ],
    exposedHeaders: ["Content-Range", "Location", "Retry-After", "WWW-Authenticate"],
    maxAge: PREFLIGHT_AGE_S,
  });
}

const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);
const OWN_PAGES: ReadonlySet<unknown> = new Set([undefined, "same-origin", "none"]);

/**
 * Refuses writes from pages of other sites. A browser adds credentials such as a gateway's cookie to their requests, so they
 * would act with the user's rights. Pages of `origins` may write.
 */
export function refuseCrossSiteWrites(
  origins: readonly string[],
): (request: FastifyRequest) => Promise<void> {
  return async ({ method, headers }) => {
    if (SAFE_METHODS.has(method) || OWN_PAGES.has(headers["sec-fetch-site"])) return;
    if (headers.origin !== undefined && origins.includes(headers.origin)) return;
    throw new AppError("forbidden", "Requests from pages of other sites are refused.");
  };
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i;

/** Without authentication, a page whose domain resolves to this machine (DNS rebinding) must not reach the server. */
export async function refuseForeignHosts(request: FastifyRequest): Promise<void> {
  const { host } = request.headers;
  if (host === undefined || LOOPBACK.test(host)) return;
  throw new AppError(
    "forbidden",
    "This server has no authentication and answers only to `localhost`. Use that host name.",
  );
}
