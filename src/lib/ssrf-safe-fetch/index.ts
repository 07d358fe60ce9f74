// HTTP requests to untrusted URLs, restricted to public addresses. Every address of the host is checked, and the
// connection uses a checked address even if the name resolves to a different one by then.
//
// Each request has one connection, which is closed with its response. Redirects and proxies are not supported. `signal`
// is the only time limit.

import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Dispatcher } from "undici";
import { orAborted } from "../async.ts";
import { decompressed, EncodingError } from "../decompress.ts";
import type { HostList } from "../hosts.ts";
import { FetchError, pinnedDial } from "./dial.ts";
import { isPublicAddress, publicNames } from "./public-address.ts";

/** The maximum number of interim responses (1xx) before the final one. */
const MAX_INTERIM = 20;
const MAX_HEADER_BYTES = 16 * 1024;
/** The maximum number of addresses. A host with more addresses is not called. */
const MAX_ADDRESSES = 64;
/** The maximum number of addresses of one host to try. */
const MAX_TRIED = 8;

export interface PublicRequest {
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** Allows the server to compress the response. By default, a compressed response cannot be read. */
  readonly isCompressible?: boolean;
}

/** A response that the caller must dispose of. */
export interface PublicResponse {
  readonly status: number;
  /** The headers by lowercase name. If a header is repeated, the first value is used. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Yields the body as it arrives. Call this once. Throws a `FetchError`, for example if the decompressed body exceeds
   * `maxBytes`.
   */
  read(maxBytes: number): AsyncGenerator<Uint8Array>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Throws a `FetchError` or the reason of `signal`. */
export type PublicFetch = (url: string, request: PublicRequest) => Promise<PublicResponse>;

export interface PublicFetchOptions {
  /** Hosts that can have any address. By default, there are none. */
  readonly allow?: HostList;
  /**
   * Returns all addresses of a name, or none for an unknown name. Defaults to the system's resolver for allowed hosts
   * and to DNS for all others.
   */
  readonly resolve?: (host: string, signal: AbortSignal) => Promise<readonly string[]>;
}

export function createPublicFetch(options: PublicFetchOptions = {}): PublicFetch {
  return async (address, request) => {
    const url = httpUrl(address);
    const { addresses, isAllowed } = await lookUp(url, options, request.signal);
    // One message for all cases, so callers cannot find out which private names exist.
    if (addresses.length === 0 || !isAllowed)
      throw new FetchError("forbidden", "its host has no public address");
    request.signal.throwIfAborted();
    return send(url, addresses.slice(0, MAX_TRIED), request);
  };
}

/**
 * Returns true if the current addresses of the URL's host are refused. A name without an address, or one that does not
 * resolve before `signal` aborts, may get an address later and is not refused.
 */
export async function isRefused(
  url: URL,
  options: PublicFetchOptions,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const { addresses, isAllowed } = await lookUp(url, options, signal);
    return addresses.length > 0 && !isAllowed;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}

/** `isAllowed` is true if all addresses can be called. Throws the reason of `signal`. */
export async function lookUp(
  url: URL,
  { allow = () => false, resolve }: PublicFetchOptions,
  signal: AbortSignal,
): Promise<{ readonly addresses: readonly string[]; readonly isAllowed: boolean }> {
  const isOpen = allow(url);
  const names = resolve ?? (isOpen ? systemNames : publicNames);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const addresses = isIP(host) ? [host] : await orAborted(namesOf(host), signal);
  return {
    addresses,
    isAllowed: addresses.length <= MAX_ADDRESSES && (isOpen || addresses.every(isPublicAddress)),
  };

  /** `localhost` means this machine, without a DNS query (RFC 6761). */
  async function namesOf(name: string): Promise<readonly string[]> {
    const isThisMachine = !isOpen && /(^|\.)localhost\.?$/.test(name);
    return isThisMachine ? ["127.0.0.1"] : names(name, signal);
  }
}

/** Throws a `FetchError` for a URL that must not be called. */
export function httpUrl(text: string): URL {
  const url = URL.parse(text);
  if (url?.protocol !== "http:" && url?.protocol !== "https:")
    throw new FetchError("forbidden", "its URL does not begin with http:// or https://");
  if (url.username !== "" || url.password !== "")
    throw new FetchError("forbidden", "its URL contains a user name or a password");
  return url;
}

async function systemNames(host: string): Promise<string[]> {
  const found = await lookup(host, { all: true }).catch(() => []);
  return found.map(({ address }) => address);
}

async function send(
  url: URL,
  addresses: readonly string[],
  { method, headers, body, signal, isCompressible = false }: PublicRequest,
): Promise<PublicResponse> {
  const { Client } = await import("undici");
  const dial = await pinnedDial(addresses);
  const client = new Client(url.origin, {
    connect: dial.connect,
    allowH2: false,
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const close = async () => {
    dial.hangUp();
    await client.destroy();
  };
  const failure = (error: unknown) =>
    signal.aborted ? signal.reason : translated(error, dial.isConnected() ? "broken" : "unreachable");
  try {
    let interim = 0;
    const answer = await client.request({
      onInfo() {
        if (++interim > MAX_INTERIM)
          dial.hangUp(new FetchError("unreadable", "the response headers never arrived"));
      },
      path: url.pathname + url.search,
      method,
      signal,
      reset: true,
      headers: { ...headers, "accept-encoding": isCompressible ? "gzip, deflate, br" : "identity" },
      body: body ?? null,
    });
    return { ...readable(answer, isCompressible, failure), [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw failure(error);
  }
}

function readable(
  { statusCode: status, headers: lists, body }: Dispatcher.ResponseData,
  isCompressible: boolean,
  failure: (error: unknown) => unknown,
): Pick<PublicResponse, "status" | "headers" | "read"> {
  body.on("error", () => {}); // passed on to readers; without a reader, it must not crash the process
  const headers = Object.fromEntries(
    Object.entries(lists).map(([name, value]) => [name, (Array.isArray(value) ? value[0] : value) ?? ""]),
  );
  const coding = headers["content-encoding"] ?? "identity";
  if (coding !== "identity" && !isCompressible)
    throw new FetchError("unreadable", "the response is compressed, which was not requested");
  return {
    status,
    headers,
    async *read(maxBytes) {
      let size = 0;
      try {
        for await (const chunk of decompressed(body, coding)) {
          size += chunk.length;
          if (size > maxBytes)
            throw new FetchError("unreadable", `the response is larger than ${maxBytes / 1024} KiB`);
          yield chunk;
        }
      } catch (error) {
        throw failure(error);
      }
    },
  };
}

const SENTENCES = {
  unreachable: "no connection could be made",
  broken: "the connection broke before the answer was complete",
} as const;

function translated(error: unknown, otherwise: keyof typeof SENTENCES): FetchError {
  if (error instanceof FetchError) return error;
  if (error instanceof EncodingError)
    return new FetchError("unreadable", `the response ${error.message}`, error);
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "UND_ERR_HEADERS_OVERFLOW")
    return new FetchError(
      "unreadable",
      `the response headers are larger than ${MAX_HEADER_BYTES / 1024} KiB`,
      error,
    );
  // The parser reports both cases with the same error.
  if (error instanceof Error && error.name === "HTTPParserError")
    return new FetchError("broken", "the response was cut off or is not valid HTTP", error);
  // Error codes of the system or of TLS contain no host.
  const known = typeof code === "string" && /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? ` (${code})` : "";
  return new FetchError(otherwise, SENTENCES[otherwise] + known, error);
}
