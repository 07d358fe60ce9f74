// Limits how long a request may take to arrive. Node's timeout for whole requests would cut slow uploads of large
// files.

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { AppError } from "../../agent/core/errors.ts";

/** The maximum time for the head of a request, in ms. At most the time for a whole request. */
const HEAD_MS = 30_000;
/** The interval between two checks for late heads, in ms. */
const CHECK_MS = 5_000;

/** Returns options for Node: a connection that does not send a complete head in time gets 408. */
export const headTimeout = (requestMs: number) => ({
  headersTimeout: Math.min(HEAD_MS, requestMs),
  connectionsCheckingInterval: Math.min(CHECK_MS, requestMs),
});

const deadlines = new WeakMap<IncomingMessage, NodeJS.Timeout>();

/**
 * Limits how long a body may take to arrive. A late request fails with `request_timeout`. If its response was already
 * sent, as for a refused request, the connection is destroyed.
 */
export function boundBodies(server: Server, requestMs: number): void {
  server.prependListener("request", (request: IncomingMessage, response: ServerResponse) => {
    if (!announcesBody(request)) return;
    const clear = () => clearTimeout(deadlines.get(request));
    const begin = () => {
      clear();
      deadlines.set(request, setTimeout(expire, requestMs).unref());
    };
    const expire = () => {
      // The body's parser listens for the error. If there is no parser, nothing else would send a response.
      if (response.headersSent || request.listenerCount("error") === 0) request.socket.destroy();
      else request.emit("error", requestTimeout(requestMs));
    };
    begin();
    request.once("end", clear).once("close", clear);
    response.once("finish", () => {
      if (!request.complete) begin();
    });
  });
  // Node would ask for a body that its parser then refuses, and no response could be sent.
  server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    if (!/(^|,)\s*chunked\s*$/i.test(request.headers["transfer-encoding"] ?? "chunked")) return;
    response.writeContinue();
    server.emit("request", request, response);
  });
}

const announcesBody = ({ headers }: IncomingMessage) =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"]) > 0;

/** Used by routes that read their body with `slowBody`, possibly long after the request arrived. */
export function liftDeadline(body: IncomingMessage): void {
  clearTimeout(deadlines.get(body));
}

/** The minimum average rate of a slow body, in bytes per ms. */
const BYTES_A_MS = 4;

/**
 * Yields a body that may arrive slowly. Throws `request_timeout` if no data arrives for `stallMs`, or if the body takes
 * `stallMs` longer than at the minimum rate. Throws the reason of `over` when it aborts.
 */
export async function* slowBody(
  body: Readable,
  stallMs: number,
  over: AbortSignal,
): AsyncGenerator<Uint8Array, void, void> {
  // Otherwise, an early end would destroy the connection before the response.
  const chunks = body.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array, void>;
  let leftMs = stallMs;
  try {
    for (;;) {
      over.throwIfAborted();
      // Only the time spent waiting for data counts, because the reader may be slow too.
      const { promise, reject } = Promise.withResolvers<never>();
      const began = performance.now();
      const timer = setTimeout(() => reject(requestTimeout(stallMs)), Math.min(leftMs, stallMs));
      const end = () => reject(over.reason);
      over.addEventListener("abort", end, { once: true });
      const next = await Promise.race([chunks.next(), promise]).finally(() => {
        clearTimeout(timer);
        over.removeEventListener("abort", end);
      });
      if (next.done) return;
      leftMs += next.value.length / BYTES_A_MS - (performance.now() - began);
      yield next.value;
    }
  } finally {
    void Promise.resolve(chunks.return?.()).catch(() => {});
  }
}

const requestTimeout = (ms: number) =>
  new AppError(
    "request_timeout",
    `The body of the request did not arrive within ${ms / 1000} s, or arrived too slowly (limits.request_timeout).`,
  );
