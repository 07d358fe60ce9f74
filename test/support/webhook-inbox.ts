// A receiver of webhooks: a real HTTP server that keeps what it is sent.

import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly message: {
    readonly type: string;
    readonly timestamp: string;
    readonly data: Record<string, unknown>;
  };
}

/** Answers each message with the next of `answers`, and then with 204. Closed when the test has finished. */
export async function webhookInbox(...answers: (number | "never")[]) {
  const received: Received[] = [];
  const held: ServerResponse[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    received.push({ headers: request.headers, body, message: JSON.parse(body) });
    const answer = answers.shift() ?? 204;
    if (answer === "never") held.push(response);
    else response.writeHead(answer).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  /** From now on every message is answered, also those that were not. */
  const answerAll = () => {
    answers.splice(0);
    for (const response of held) response.writeHead(204).end();
  };
  return { received, answerAll, url: `http://127.0.0.1:${port}/hook?key=hidden`, host: `127.0.0.1:${port}` };
}
