// Answers 503 on the server's port while no worker serves: a worker listens by way of this process, which gives the port up when
// the last one ends.

import { createServer, type Server } from "node:http";
import { setTimeout as delay } from "node:timers/promises";

const BODY = JSON.stringify({
  title: "unavailable",
  status: 503,
  code: "unavailable",
  detail: "The server is restarting. Try again later.",
  instance: "",
});
const HEADERS = {
  "content-type": "application/problem+json",
  "content-length": Buffer.byteLength(BODY),
  "retry-after": "1",
  connection: "close",
};
/** How long it may take until the port of the last worker is free, in ms, and how often that is tried. */
const FREE_MS = 2_000;
const PAUSE_MS = 20;

export interface Standby {
  /** Answers until `close`. Never throws: without the port nothing is answered. */
  open(): Promise<void>;
  /** Gives the port back. A worker can listen on it once this has returned. */
  close(): void;
}

export function createStandby(listen: { readonly host: string; readonly port: number }): Standby {
  let server: Server | undefined;
  const close = () => {
    server?.close();
    server = undefined;
  };
  return {
    async open() {
      close();
      const own = createServer((request, response) => {
        // Unread, the rest of the request would count as another one.
        request.resume();
        response.writeHead(503, HEADERS).end(BODY);
      });
      server = own;
      for (const until = performance.now() + FREE_MS; server === own && performance.now() < until; ) {
        if (await listens(own, listen)) return;
        await delay(PAUSE_MS);
      }
    },
    close,
  };
}

function listens(server: Server, at: { readonly host: string; readonly port: number }): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const onError = () => resolve(false);
  server.once("error", onError);
  // Not among the handles of the workers.
  server.listen({ ...at, exclusive: true }, () => {
    server.off("error", onError);
    resolve(true);
  });
  return promise;
}
