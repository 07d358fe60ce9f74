// MCP's own client.

import {
  Client,
  type ElicitRequest,
  type ElicitResult,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { onTestFinished } from "vitest";
import type { Script, Turn } from "../../../src/agent/models/scripted.ts";
import { startServer } from "../../support/server.ts";
import { AGENTS } from "../agents.ts";

export async function started(script: readonly Turn[] | Script, config: object = {}) {
  const { url } = await startServer({ script, agents: AGENTS, config: { wires: ["mcp"], ...config } });
  return url;
}

export type Era = "legacy" | "auto";

export interface Connecting {
  readonly era?: Era;
  readonly headers?: Record<string, string>;
  /** Asks the person; a client without it shows no forms. */
  readonly ask?: (request: ElicitRequest) => ElicitResult | Promise<ElicitResult>;
  /** How it asks; default: by forms. */
  readonly elicitation?: { readonly form?: Record<string, never>; readonly url?: Record<string, never> };
  readonly fetch?: typeof fetch;
}

/** A connected client of a stock program. Closed when the test has finished. */
export async function connected(
  url: string,
  { era = "legacy", headers = {}, ask, elicitation = {}, fetch: by }: Connecting = {},
) {
  const client = new Client(
    { name: "test", version: "1" },
    { versionNegotiation: { mode: era }, ...(ask ? { capabilities: { elicitation } } : {}) },
  );
  if (ask) client.setRequestHandler("elicitation/create", async (request) => ask(request));
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
    requestInit: { headers },
    ...(by ? { fetch: by } : {}),
    reconnectionOptions: {
      initialReconnectionDelay: 10,
      maxReconnectionDelay: 10,
      reconnectionDelayGrowFactor: 1,
      maxRetries: 5,
    },
  });
  await client.connect(transport);
  onTestFinished(() => client.close());
  return client;
}

export const run = (message: string, more: object = {}) => ({
  name: "run_agent",
  arguments: { agent: "assistant", message, ...more },
});
export type Result = Awaited<ReturnType<Client["callTool"]>>;
export const outcomeOf = ({ structuredContent }: Result) =>
  structuredContent as {
    thread_id: string;
    run_id: string;
    status: string;
    text: string;
    interrupts?: { id: string }[];
  };
export const textIn = ({ content }: Result) => (content[0]?.type === "text" ? content[0].text : "");

export const EXECUTES: Script = ({ messages }, call) => {
  if (call === 0) return { call: [{ tool: "execute", args: { command: "echo ran" } }] };
  const last = JSON.stringify(messages.at(-1));
  return { say: last.includes("ran\\n") ? "It ran." : last };
};
export const ASKS: readonly Turn[] = [
  { call: [{ tool: "ask_user", args: { question: "Which?", options: ["red", "blue"] } }] },
  { say: "Blue it is." },
];
export const SLOW: readonly Turn[] = [{ say: "a ".repeat(1000), delay_ms: 20 }];

/** Ends the answer of the first call of a tool after its first event, by a clean end or a broken connection. */
export function cuttingFetch(how: "end" | "break") {
  let cuts = 0;
  const methods: string[] = [];
  const cutting: typeof fetch = async (input, init) => {
    methods.push(init?.method ?? "GET");
    const response = await fetch(input, init);
    const isCall = typeof init?.body === "string" && init.body.includes("tools/call");
    if (!isCall || cuts > 0 || !response.body) return response;
    cuts++;
    const reader = response.body.getReader();
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { value } = await reader.read();
        if (value) controller.enqueue(value);
        await reader.cancel();
        if (how === "end") controller.close();
        else controller.error(new Error("cut"));
      },
    });
    return new Response(body, response);
  };
  return { fetch: cutting, methods };
}

export const callOf = (id: number, params: object) => ({ jsonrpc: "2.0", id, method: "tools/call", params });

/** A request as bytes; a text is sent as it is. */
export function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}
