// Sends the GET requests of the web tools. The host of every URL, including redirects, must be allowed and public.

import { hostMatcher } from "../../../lib/host-patterns.ts";
import { FetchError } from "../../../lib/ssrf-safe-fetch/dial.ts";
import { httpUrl, type PublicFetch, type PublicResponse } from "../../../lib/ssrf-safe-fetch/index.ts";

const MAX_REDIRECTS = 5;

/**
 * The tenant that makes the request, which takes turns with other tenants on shared threads, and the signal
 * that ends the request.
 */
export interface Asker {
  readonly turn: string;
  readonly signal: AbortSignal;
}

/** Throws a `FetchError` for a host that must not be contacted. */
export type Hosts = (url: URL) => void;

export interface GetOptions {
  readonly hosts: Hosts;
  readonly asker: Asker;
  /** Called before each request, including redirects. May throw. */
  before?(url: URL): Promise<void>;
}

export type GetResponse = PublicResponse & { readonly url: URL };

/**
 * Sends a GET request. The caller must dispose of the response, which is never a redirect. Throws a
 * `FetchError`.
 */
export type PublicGet = (url: URL, options: GetOptions) => Promise<GetResponse>;

export function publicGet(fetch: PublicFetch, userAgent: string): PublicGet {
  const headers = { accept: ACCEPT, "user-agent": userAgent };
  return async (first, { hosts, asker: { signal }, before }) => {
    let url = withoutFragment(first);
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
      hosts(url);
      await before?.(url);
      const response = await fetch(url.href, { method: "GET", headers, signal, isCompressible: true });
      const { location } = response.headers;
      if (!REDIRECTS.has(response.status) || location === undefined) return { ...response, url };
      await response[Symbol.asyncDispose]();
      url = withoutFragment(httpUrl(URL.parse(location, url.href)?.href ?? ""));
    }
    throw new FetchError("unreadable", `it has more than ${MAX_REDIRECTS} redirects`);
  };
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const ACCEPT =
  "text/markdown, text/html, application/xhtml+xml, application/pdf, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5";

function withoutFragment(url: URL): URL {
  const bare = new URL(url);
  bare.hash = "";
  return bare;
}

/** Returns the bytes in a separate buffer, so they can be transferred to a thread. */
export async function readBody(response: PublicResponse, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.read(maxBytes)) {
    chunks.push(chunk);
    size += chunk.length;
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

/** Creates the check of hosts from patterns. Without `allow`, every host that is not denied is allowed. */
export function hostsOf({
  allow,
  deny,
}: {
  allow?: readonly string[] | undefined;
  deny: readonly string[];
}): Hosts {
  const isAllowed = allow ? hostMatcher(allow) : () => true;
  const isDenied = hostMatcher(deny);
  return (url) => {
    if (!isAllowed(url) || isDenied(url))
      throw new FetchError("forbidden", `this server's operator does not allow the host ${url.hostname}`);
  };
}
