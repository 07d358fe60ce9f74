// An MCP server over streamable HTTP whose calls a test answers as it likes.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface HttpCall {
  readonly id: number;
  readonly args: Record<string, unknown>;
  readonly meta?: Record<string, unknown> | undefined;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

export interface HttpServer {
  readonly url: string;
  readonly requests: IncomingMessage[];
  /** Knows none of its sessions any more. */
  forget(): void;
}

/** Its tools are the names of `tools`. `intercept` answers a request instead, when it returns true. */
export async function overHttp(
  tools: Readonly<Record<string, (call: HttpCall) => void>>,
  intercept: (request: IncomingMessage, response: ServerResponse) => boolean | Promise<boolean> = () => false,
): Promise<HttpServer> {
  let sessions = 0;
  const known = new Set<string>();
  const requests: IncomingMessage[] = [];
  const server = createServer(async (request, response) => {
    requests.push(request);
    if (await intercept(request, response)) return;
    if (request.method !== "POST") return void response.writeHead(405).end();
    const { id, method, params } = await bodyOf(request);
    if (method === "initialize") {
      const session = `session-${++sessions}`;
      known.add(session);
      response.setHeader("mcp-session-id", session);
      const serverInfo = { name: "http", version: "1" };
      return answer(response, id, { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo });
    }
    if (!known.has(String(request.headers["mcp-session-id"]))) return void response.writeHead(404).end();
    if (id === undefined) return void response.writeHead(202).end();
    const listed = Object.keys(tools).map((name) => ({ name, inputSchema: { type: "object" } }));
    if (method === "tools/list") return answer(response, id, { tools: listed });
    if (method === "tools/call")
      return tools[String(params?.name)]?.({
        ...{ id, args: params?.arguments ?? {}, meta: params?._meta, request, response },
      });
    answer(response, id, {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  // It listens on a port.
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/mcp`, requests, forget: () => known.clear() };
}

export function answer(response: ServerResponse, id: number | undefined, result: object): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
}

interface Body {
  readonly id?: number;
  readonly method: string;
  readonly params?: {
    name?: string;
    arguments?: Record<string, unknown>;
    _meta?: Record<string, unknown>;
  };
}

async function bodyOf(request: IncomingMessage): Promise<Body> {
  let text = "";
  for await (const chunk of request) text += chunk;
  return JSON.parse(text);
}
