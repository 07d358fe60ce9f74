// Responds with 503 to connections while no worker is serving.

import { createServer } from "node:http";
import type { Socket } from "node:net";
import { errorPage } from "../../../server/http/error-page.ts";

const BODY = JSON.stringify({
  type: errorPage("unavailable"),
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
/** The maximum time for a client to send its request and read the response, in ms. */
const LONGEST_MS = 5_000;

/** Returns a function that responds to one request on a paused connection and closes it. */
export function createStandby(): (socket: Socket) => void {
  const server = createServer((request, response) => {
    // Otherwise, Node would read the rest of the request as another one.
    request.resume();
    response.writeHead(503, HEADERS).end(BODY);
  });
  return (socket) => {
    // The process may end before its clients have read the response.
    socket.unref();
    const timer = setTimeout(() => socket.destroy(), LONGEST_MS).unref();
    socket.once("close", () => clearTimeout(timer));
    server.emit("connection", socket);
    socket.resume();
  };
}
