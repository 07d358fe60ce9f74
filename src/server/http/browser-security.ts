// Protects users in a browser: security headers and CORS on every response, no cached responses, no cross-site writes
// (CSRF), and no foreign Host header (DNS rebinding).

import fastifyCors, { type FastifyCorsOptions } from "@fastify/cors";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import helmet from "helmet";
import { AppError } from "../../agent/core/errors.ts";
import { isLoopback, within } from "../../lib/hosts.ts";
import { accessOf } from "../auth/scopes.ts";
import { isWirePath } from "../config/wire-names.ts";

/** The hash of the only inline script, which starts the API reference. */
const START_SCRIPT = "'sha256-dwSaZgbkQvOjoObQr93/MnBtrRm/nVoUSrgSFOKcnhg='";

/** The policy for the server's own pages. Swagger UI sets styles on its elements and draws with `data:` images. */
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

/** How long browsers may cache a preflight response, in seconds. */
const PREFLIGHT_AGE_S = 600;

const ALLOWED_HEADERS = [
  // Pages with tracing add these headers to each request.
  ...["Baggage", "Sentry-Trace", "Tracestate"],
  "Authorization",
  "Content-Type",
  "Idempotency-Key",
  "If-Match",
  "If-None-Match",
  "Last-Event-ID",
  "Range",
  "Traceparent",
  "X-API-Key",
  "X-Request-Id",
];
const EXPOSED_HEADERS = [
  "Content-Range",
  "ETag",
  "Location",
  "Retry-After",
  "WWW-Authenticate",
  "X-Request-Id",
];

/** Additional headers that stock clients send and read. `*` would not cover `Authorization`, so each header is listed. */
const WIRE_ALLOWED_HEADERS = [
  ...["Accept", "Cache-Control", "Prefer", "User-Agent", "X-Auth-Scheme"],
  ...["OpenAI-Beta", "OpenAI-Organization", "OpenAI-Project"],
  ...["arch", "lang", "os", "package-version", "runtime", "runtime-version", "retry-count", "timeout"].map(
    (name) => `X-Stainless-${name}`,
  ),
  ...["X-Stainless-Helper-Method", "A2A-Version", "A2A-Extensions", "X-CopilotCloud-Public-Api-Key"],
  ...["Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"],
  ...["X-Conversation-Id", "X-Thread-Id", "Anthropic-Version"],
];
const WIRE_EXPOSED_HEADERS = [
  ...["Content-Location", "X-Pagination-Total", "X-Pagination-Next"],
  ...["X-Vercel-AI-UI-Message-Stream", "Mcp-Session-Id", "X-Ignored-Parameters"],
];

/** Call this before any hook that may refuse a request, so pages can read the refusal. */
export async function browserHeaders(server: FastifyInstance, origins: readonly string[]): Promise<void> {
  // Created once, because Fastify's plugin would create it for every request.
  const protect = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: CONTENT_POLICY },
    frameguard: { action: "deny" },
    // Set by the proxy that terminates TLS.
    strictTransportSecurity: false,
  });
  server.addHook("onRequest", ({ raw }, reply, done) => protect(raw, reply.raw, () => done()));
  if (origins.length === 0) return;
  const native = corsFor(origins, ALLOWED_HEADERS, EXPOSED_HEADERS);
  const wires = corsFor(
    origins,
    [...ALLOWED_HEADERS, ...WIRE_ALLOWED_HEADERS],
    [...EXPOSED_HEADERS, ...WIRE_EXPOSED_HEADERS],
  );
  await server.register(fastifyCors, () => (request: FastifyRequest, answer: CorsAnswer) => {
    answer(null, isWirePath(request.url) ? wires : native);
  });
}

type CorsAnswer = (error: Error | null, options: FastifyCorsOptions) => void;

const corsFor = (
  origins: readonly string[],
  allowedHeaders: string[],
  exposedHeaders: string[],
): FastifyCorsOptions => ({
  origin: [...origins],
  methods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
  allowedHeaders,
  exposedHeaders,
  maxAge: PREFLIGHT_AGE_S,
});

/**
 * Prevents caches between the server and the user from storing a response. A route whose response is the same for all
 * users overrides the header.
 */
export async function forbidCaching(_request: FastifyRequest, reply: FastifyReply): Promise<void> {
  reply.header("cache-control", "no-store");
}

/** The names by which requests may reach this server. */
export interface ServerNames {
  /** Host names in addition to this machine's own. */
  readonly hosts: readonly string[];
  /** The URL at which other machines reach this server. */
  readonly publicUrl?: string | undefined;
}
const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);
const OWN_PAGES: ReadonlySet<unknown> = new Set(["same-origin", "none"]);

export interface PageOrigins extends Pick<ServerNames, "publicUrl"> {
  /** The origins whose pages may write. */
  readonly origins: readonly string[];
  /** The addresses whose `X-Forwarded-Host` is trusted. */
  readonly trustedProxies: readonly string[];
}

/**
 * Refuses writes from pages of other sites. A browser adds credentials such as a gateway's cookie to these requests, so
 * they would act with the user's rights. Browsers send `Sec-Fetch-Site` only to secure origins, and old browsers never
 * send it. If it is missing, the page's `Origin` must be this server's. A request with neither header does not come
 * from a page.
 */
export function refuseCrossSiteWrites({
  origins,
  publicUrl,
  trustedProxies,
}: PageOrigins): (request: FastifyRequest) => Promise<void> {
  const isTrusted = within(trustedProxies);
  const ownOrigin = publicUrl === undefined ? undefined : new URL(publicUrl).origin;

  const isOwnPage = ({ headers, raw }: FastifyRequest) => {
    if (headers.origin === undefined || headers.origin === ownOrigin) return true;
    const page = URL.parse(headers.origin);
    if (!page) return false;
    const { host = "", "x-forwarded-host": forwarded = "" } = headers;
    const names = isTrusted(raw.socket.remoteAddress ?? "") ? [host, ...[forwarded].flat()] : [host];
    return names
      .flatMap((name) => name.split(","))
      .some((name) => URL.parse(`${page.protocol}//${name.trim()}`)?.host === page.host);
  };

  return async (request) => {
    const { method, headers } = request;
    const site = headers["sec-fetch-site"];
    if (SAFE_METHODS.has(method) || OWN_PAGES.has(site)) return;
    if (headers.origin !== undefined && origins.includes(headers.origin)) return;
    if (site === undefined && isOwnPage(request)) return;
    throw new AppError(
      "forbidden",
      "This server refuses requests from pages of other sites. The operator can allow a site with CORS_ORIGINS.",
    );
  };
}

/**
 * If a request has two `Host` headers, a gateway in front of this server may read the other one (RFC 9112, section
 * 3.2).
 */
export async function refuseTwoHosts({ raw }: FastifyRequest): Promise<void> {
  const hosts = raw.rawHeaders.filter((name, at) => at % 2 === 0 && HOST_NAME.test(name)).length;
  if (hosts === 0 && raw.httpVersion === "1.1")
    throw new AppError("invalid_request", "The request has no `Host` header. Send one.");
  if (hosts > 1)
    throw new AppError("invalid_request", `The request has ${hosts} \`Host\` headers. Send exactly one.`);
}
const HOST_NAME = /^host$/i;

const HOST = /^(\[[\da-f:.]+\]|[^\s:,@/[\]]+)(?::\d{1,5})?$/i;

/**
 * Refuses a `Host` that is neither this machine's nor in `names`. Otherwise, a page whose domain resolves to this
 * machine (DNS rebinding) could reach a server that requires no credentials. Public routes accept any `Host`.
 */
export function refuseForeignHosts({ hosts, publicUrl }: ServerNames) {
  const own = publicUrl === undefined ? [] : [new URL(publicUrl).hostname];
  const names = new Set([...hosts, ...own].map((name) => name.toLowerCase()));

  return async ({ method, routeOptions, headers: { host } }: FastifyRequest): Promise<void> => {
    if (host === undefined || accessOf(method, routeOptions.url ?? "", routeOptions.config) === "public")
      return;
    const name = HOST.exec(host)?.[1]
      ?.toLowerCase()
      .replace(/^\[(.*)\]$/, "$1");
    if (name !== undefined && (isLoopback(name) || names.has(name))) return;
    throw new AppError(
      "forbidden",
      `This server does not accept the host name \`${host.slice(0, MAX_NAME)}\`. Use \`localhost\`, or set AUTH_HOSTS or PUBLIC_URL.`,
    );
  };
}

/** The maximum number of characters of a host name in a message. */
const MAX_NAME = 253;
