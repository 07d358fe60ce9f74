// A callback tool that a test carries out: it learns of each call, and the test decides when it is answered and delivered.

import type { ServerResponse } from "node:http";
import type { Message } from "../../src/agent/core/message.ts";
import { httpServer } from "./hostile.ts";

export interface Call {
  readonly name: string;
  readonly args: Record<string, unknown>;
  readonly thread_id: string;
  readonly result_url: string;
  readonly response: ServerResponse;
}

const headers = { "content-type": "application/json" };

export const send = (url: string, body: unknown) =>
  fetch(url, { method: "POST", headers, body: JSON.stringify(body) });

export const accept = ({ response }: Call) => void response.writeHead(202).end();
export const answer = ({ response }: Call, result: unknown) =>
  void response.writeHead(200, headers).end(JSON.stringify({ result }));

/** `onCall` answers, or leaves the call open. */
export async function callbackTool(onCall: (call: Call) => void) {
  const calls: Call[] = [];
  const server = await httpServer((heard, response) => {
    const call = { ...JSON.parse(heard.body), response };
    calls.push(call);
    onCall(call);
  });
  const register = (url: string, name = "freight", more: object = {}) =>
    send(`${url}/tools`, {
      ...{ name, description: "What it costs.", parameters: { type: "object" }, callback_url: server.url },
      ...{ annotations: { requires_permission: false }, ...more },
    });
  return { calls, allow: `127.0.0.1:${server.port}`, register };
}

export async function messagesOf(url: string, thread: string): Promise<Message[]> {
  const response = await fetch(`${url}/threads/${thread}/messages?limit=1000`);
  return ((await response.json()) as { items: Message[] }).items;
}

export const textIn = (messages: readonly Message[], role: Message["role"]) =>
  messages
    .filter((message) => message.role === role)
    .map((message) => `${(message.role === "tool" && message.error) || ""}${message.content}`);
