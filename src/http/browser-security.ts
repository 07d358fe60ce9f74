// What browsers are told about every answer: that it is no page to be framed or scripted by others, and which other
// sites' pages may read it.

import fastifyCors from "@fastify/cors";
import fastifyHelmet from "@fastify/helmet";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { AppError } from "../core/errors.ts";

/** The one script that stands in a page itself: the call that starts the API reference. */
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

/** A browser may keep an answer about what it may send for so long, in s. */
const PREFLIGHT_AGE_S = 600;

/** To be called before any hook that may refuse a request, so that pages can read the refusal. */
export async function browserHeaders(server: FastifyInstance, origins: readonly string[]): Promise<void> {
  await server.register(fastifyHelmet, {
    contentSecurityPolicy: { useDefaults: false, directives: CONTENT_POLICY },
    frameguard: { action: "deny" },
    // Whoever ends TLS in front of us knows whether everything is to be reached by it.
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

// Web pages of other sites. What a browser adds by itself to every request, such as a gateway's cookie, must not
// give them the rights of whoever looks at them.
const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);
const OWN_PAGES: ReadonlySet<unknown> = new Set([undefined, "same-origin", "none"]);

/**
 * A page from elsewhere may send a request without a body, though it never sees the answer. Those of `origins` may
 * send any.
 */
export function refuseForeignPages(origins: readonly string[]): (request: FastifyRequest) => Promise<void> {
  return async ({ method, headers }) => {
    if (SAFE_METHODS.has(method) || OWN_PAGES.has(headers["sec-fetch-site"])) return;
    if (headers.origin !== undefined && origins.includes(headers.origin)) return;
    throw new AppError("forbidden", "Pages of other sites may not change anything here.");
  };
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
