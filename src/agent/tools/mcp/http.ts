// The transport to a remote server over streamable HTTP. Uses the SDK's transport with a `fetch` that limits size and rate,
// has no time limits, and ends the request of a cancelled call.

import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Agent, type Dispatcher, EnvHttpProxyAgent, type RequestInit, fetch as undiciFetch } from "undici";
import { sseParser } from "../../../lib/sse-parser.ts";
import type { HttpServer } from "./options.ts";
import { messageAllowance } from "./rate-limiter.ts";

const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
const MAX_CONNECTIONS = 128;
const CONNECT_MS = 10_000;
/** The maximum time for the request that ends the session, in ms. */
const FAREWELL_MS = 1000;

export interface CurrentCall {
  /**
   * Ends the request. The signal is needed because the SDK cancels a call at the server but keeps its own
   * request open.
   */
  readonly signal: AbortSignal;
  readonly traceparent: string | undefined;
  /** The scopes that were missing from the token when the server refused the call. */
  missingScopes?: readonly string[];
}

export const currentCall = new AsyncLocalStorage<CurrentCall>();

export interface HttpTransport {
  readonly transport: StreamableHTTPClientTransport;
  /** Closes all connections. With `farewell`, ends the session at the server first. */
  release(farewell: boolean): Promise<void>;
}

/** Creates the transport. The caller must release it. */
export function httpTransport({ url, headers }: HttpServer): HttpTransport {
  // The transport sets no time limits, because every call has time limits.
  const options = { connections: MAX_CONNECTIONS, headersTimeout: 0, bodyTimeout: 0 };
  const connect = { timeout: CONNECT_MS };
  const dispatcher =
    process.env.NODE_USE_ENV_PROXY === "1"
      ? new EnvHttpProxyAgent({ ...options, connect })
      : new Agent({ ...options, connect });
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers },
    fetch: fairFetch(dispatcher),
  });
  return {
    transport,
    async release(farewell) {
      if (farewell) {
        const said = transport.terminateSession().catch(() => {});
        await Promise.race([said, sleep(FAREWELL_MS, undefined, { ref: false })]);
      }
      await transport.close();
      await dispatcher.destroy();
    },
  };
}

function fairFetch(dispatcher: Dispatcher) {
  return async (url: string | URL, init: globalThis.RequestInit = {}): Promise<Response> => {
    const { body, headers, method = "GET", redirect = "manual" } = init;
    const request: RequestInit = {
      method,
      redirect,
      dispatcher,
      headers: traced(new Headers(headers)),
      body: typeof body === "string" ? body : null,
      signal: signalOf(method, init.signal),
    };
    const answer = await undiciFetch(url, request);
    const { status, statusText } = answer;
    if (status === 403) noteMissingScopes(answer.headers.get("www-authenticate") ?? "");
    const copied = { status, statusText, headers: [...answer.headers] };
    if (!answer.body) return new Response(null, copied);
    const isStream = answer.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
    return new Response(answer.body.pipeThrough(isStream ? fairEvents() : fairBody()), copied);
  };
}

/** Records the missing scopes from a challenge (RFC 6750, section 3.1). */
function noteMissingScopes(challenge: string): void {
  const call = currentCall.getStore();
  if (!call || !/\berror\s*=\s*"?insufficient_scope\b/i.test(challenge)) return;
  const [, scope = ""] = /\bscope\s*=\s*"([^"]{1,4096})"/i.exec(challenge) ?? [];
  call.missingScopes = scope.split(" ").filter((each) => each !== "");
}

function traced(headers: Headers): [string, string][] {
  const { traceparent } = currentCall.getStore() ?? {};
  if (traceparent !== undefined) headers.set("traceparent", traceparent);
  return [...headers];
}

/**
 * Returns the signal for a request. A cancelled call ends its request and its resumption, but not the
 * cancellation notice.
 */
function signalOf(method: string, own: AbortSignal | null | undefined): AbortSignal | null {
  const call = currentCall.getStore()?.signal;
  if (!call || (call.aborted && method === "POST")) return own ?? null;
  return own ? AbortSignal.any([own, call]) : call;
}

function fairBody(): TransformStream<Uint8Array, Uint8Array> {
  let size = 0;
  return new TransformStream({
    transform(chunk, controller) {
      size += chunk.length;
      if (size > MAX_MESSAGE_BYTES) throw new Error(`A response is longer than ${MAX_MESSAGE_BYTES} bytes.`);
      controller.enqueue(chunk);
    },
  });
}

function fairEvents(): TransformStream<Uint8Array, Uint8Array> {
  const take = messageAllowance();
  let events = 0;
  const parser = sseParser(() => events++, { maxLength: MAX_MESSAGE_BYTES });
  return new TransformStream({
    async transform(chunk, controller) {
      events = 0;
      parser.push(chunk);
      controller.enqueue(chunk);
      const wait = take(events, chunk.length);
      if (wait > 0) await sleep(wait, undefined, { ref: false });
    },
  });
}
