// A server on this machine that answers as a test tells it to, byte by byte if need be.

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { onTestFinished } from "vitest";

export interface Heard {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export interface LocalServer {
  readonly port: number;
  readonly url: string;
  /** The requests so far, oldest first. */
  readonly heard: Heard[];
  /** Connections that are open now. */
  open(): number;
}

type Answer = (request: Heard, response: ServerResponse) => unknown;

/** Each request is answered by `answer`, or by the next of a list of them; the last one repeats. */
export async function httpServer(
  answer: Answer | readonly Answer[],
  host = "127.0.0.1",
): Promise<LocalServer> {
  const answers = typeof answer === "function" ? [answer] : [...answer];
  const heard: Heard[] = [];
  const server = createServer(async (request, response) => {
    response.on("error", () => {});
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method = "", url: path = "", headers } = request;
    const known = { method, path, headers, body: Buffer.concat(chunks).toString() };
    heard.push(known);
    const next = answers.length > 1 ? answers.shift() : answers[0];
    await next?.(known, response);
  });
  return { ...(await listening(server, host)), heard };
}

/** `talk` gets each connection as it is. */
export async function tcpServer(talk: (socket: Socket) => void): Promise<LocalServer> {
  const server = createTcpServer(talk);
  return { ...(await listening(server, "127.0.0.1")), heard: [] };
}

async function listening(server: Server, host: string) {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
  });
  server.listen(0, host);
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // of a port that is listened on
  return { port, url: `http://127.0.0.1:${port}`, open: () => sockets.size };
}

/** JSON with status 200. */
export const json =
  (value: unknown, status = 200, headers: Record<string, string> = {}): Answer =>
  (_, response) =>
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));

/** A body of this type, or of none. */
export const served =
  (type: string | undefined, body: string | Buffer, status = 200, headers = {}): Answer =>
  (_, response) =>
    response
      .writeHead(status, { ...(type === undefined ? {} : { "content-type": type }), ...headers })
      .end(body);
