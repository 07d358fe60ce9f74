// What browsers are told about every answer: that it is no page to be framed or scripted by others, and which other
// sites' pages may read it.

import fastifyCors from "@fastify/cors";
import fastifyHelmet from "@fastify/helmet";
import type { FastifyInstance } from "fastify";

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
