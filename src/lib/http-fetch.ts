// `fetch` on node:http, for SDKs that accept one. `streamOf` returns the body of a 2xx response as a Node stream,
// because web streams are slower. Any other response is read at once, up to a limit.
//
// Connections are kept alive. Aborting `init.signal` destroys the socket at once, before and after the headers.
// Redirects, HTTP/2 and compression are not supported. With NODE_USE_ENV_PROXY=1, proxies apply as in Node's own fetch.
//
// `send` is the lower layer, for callers that do not need `Request`, `Headers` and `Response`.

import type { IncomingMessage, RequestOptions } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { finished, type Readable } from "node:stream";
import { urlToHttpOptions } from "node:url";
import { decompress } from "./decompress.ts";

// An import would evaluate all exports, and some of them load Node's own fetch, which takes a tenth of a server's
// startup time.
const { Agent: HttpAgent, request: httpRequest } = process.getBuiltinModule("node:http");

const MAX_ERROR_BYTES = 64 * 1024;
/** The number of milliseconds that `release` waits for the rest of a body. */
const RELEASE_MS = 1000;

const usesProxy = process.env.NODE_USE_ENV_PROXY === "1";
const options = { keepAlive: true, ...(usesProxy ? { proxyEnv: process.env } : {}) };
const agents = { http: new HttpAgent(options), https: new HttpsAgent(options) };

/** Returns advice if the environment names a proxy that requests do not use. Otherwise, returns undefined. */
export function unusedProxy(env: NodeJS.ProcessEnv): string | undefined {
  const name = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"].find((each) => env[each]);
  if (name === undefined || env.NODE_USE_ENV_PROXY === "1") return undefined;
  return `${name} is set but not used: set NODE_USE_ENV_PROXY=1 as well`;
}

const streams = new WeakMap<Response, IncomingMessage>();

/** Returns the unread body of a 2xx response from `httpFetch`. The caller must end it with `release` or `destroy`. */
export const streamOf = (response: Response): IncomingMessage | undefined => streams.get(response);

export async function httpFetch(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  const { method = "GET", body = null, signal } = init;
  if (body !== null && typeof body !== "string" && !(body instanceof Uint8Array))
    throw new TypeError("This fetch accepts only strings and bytes as a body.");
  const target = targetOf(new URL(input instanceof Request ? input.url : input));
  const headers = Object.fromEntries(new Headers(init.headers));
  const stream = await send(target, { method, headers, body, signal: signal ?? undefined });
  const status = stream.statusCode ?? 0;
  const isSuccess = status >= 200 && status < 300;
  const text = isSuccess || status === 304 ? null : await errorText(stream);
  const response = new Response(text, { status, headers: headersOf(stream) });
  if (isSuccess) streams.set(response, stream);
  return response;
}

/** Discards the rest of the body, so its connection can be reused. Destroys the stream if that takes too long. */
export function release(stream: IncomingMessage): void {
  if (stream.destroyed) return;
  if (stream.complete) return void stream.resume();
  const timer = setTimeout(() => stream.destroy(), RELEASE_MS).unref();
  stream.once("close", () => clearTimeout(timer));
  stream.resume();
}

/** Reads the text of a failed response and ends the stream. Returns an empty text if it cannot be read. */
export async function errorText(answer: IncomingMessage): Promise<string> {
  try {
    return await readCapped(decompress(answer), MAX_ERROR_BYTES);
  } catch {
    answer.destroy();
    return "";
  }
}

/** Returns the body as text, truncated after `cap` bytes. Ends the stream. */
export async function readCapped(stream: Readable, cap: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= cap) break;
  }
  return Buffer.concat(chunks).subarray(0, cap).toString("utf8");
}

/**
 * Calls `take` with each received piece, in the same tick of the event loop, until `take` returns false. Resolves with
 * false in that case, and with true at the end of the body. Throws errors of the body and of `take`.
 */
export function readWhile(body: Readable, take: (piece: Buffer) => boolean): Promise<boolean> {
  return new Promise((resolve, reject) => {
    // Stops at once, because the caller must not receive anything more.
    const leave = () => {
      forget();
      body.off("readable", read);
    };
    const read = () => {
      try {
        for (let piece: Buffer | null = body.read(); piece; piece = body.read()) {
          if (take(piece)) continue;
          leave();
          return resolve(false);
        }
      } catch (error) {
        leave();
        reject(error);
      }
    };
    const forget = finished(body, { writable: false }, (error) => {
      leave();
      if (error) reject(error);
      else resolve(true);
    });
    body.on("readable", read);
    read();
  });
}

/** A parsed request target, reusable across requests. */
export type RequestTarget = Readonly<RequestOptions>;

export const targetOf = (url: URL): RequestTarget => ({
  ...urlToHttpOptions(url),
  agent: url.protocol === "https:" ? agents.https : agents.http,
});

export interface OutgoingRequest {
  readonly method: string;
  /** The headers by lowercase name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
  readonly signal: AbortSignal | undefined;
  /** The maximum number of milliseconds until the response headers arrive. */
  readonly timeoutMs?: number;
}

/** Returns the response with an unread body, even if it is an error response. */
export async function send(
  target: RequestTarget,
  { method, headers, body, signal, timeoutMs }: OutgoingRequest,
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  signal?.throwIfAborted();
  const request = (target.protocol === "https:" ? httpsRequest : httpRequest)({
    ...target,
    method,
    headers: { ...headers, "accept-encoding": "identity" },
  });
  const timer =
    timeoutMs && setTimeout(() => request.destroy(new Error("The request timed out.")), timeoutMs).unref();
  request.on("response", (response) => {
    clearTimeout(timer);
    response.on("error", () => {}); // passed on to readers; without a reader, it must not crash the process
    resolve(response);
  });
  request.on("error", (error) => {
    clearTimeout(timer);
    reject(error);
  });
  signal?.addEventListener("abort", () => request.destroy(signal.reason), { once: true });
  request.end(body ?? undefined);
  return promise;
}

export function headersOf(stream: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(stream.headers))
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(", ") : value);
  return headers;
}
