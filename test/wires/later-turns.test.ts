// The third turn of a thread over each wire: the answer is that of this turn, not of one before.

import { expect, test } from "vitest";
import type { Script } from "../../src/agent/models/scripted.ts";
import { startServer } from "../support/server.ts";
import { FILE_AGENTS } from "./agents.ts";

type Json = Record<string, unknown>;
/** Sends the question of turn `n`. Returns what a client reads as its answer. `before` is what the last turn returned. */
type Ask = (url: string, n: number, before: Json) => Promise<{ answer: unknown; reply: Json }>;

const question = (n: number) => `Question ${n}`;
const HEADERS = {
  accept: "application/json, text/event-stream",
  "x-openwebui-chat-id": "t",
  "a2a-version": "1.0",
};

async function post(address: string, body: object): Promise<string> {
  const response = await fetch(address, {
    method: "POST",
    headers: { "content-type": "application/json", ...HEADERS },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  expect(response.ok, text).toBe(true);
  return text;
}
const asked = async (address: string, body: object) => JSON.parse(await post(address, body)) as Json;
/** What the pieces of a stream say. */
const streamed = async (address: string, body: object) =>
  [...(await post(address, body)).matchAll(/"delta":"([^"]*)"/g)].map(([, delta]) => delta).join("");
const read = async (address: string) => (await fetch(address)).json() as Promise<Json>;

const WIRES: Readonly<Record<string, Ask>> = {
  "the native API": async (url, n) => {
    const reply = await fetch(`${url}/threads/t/runs`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({ input: question(n) }),
    }).then((response) => response.json() as Promise<Json>);
    return { answer: reply.messages, reply };
  },
  "the AI SDK": async (url, n) => {
    const message = { id: `u${n}`, role: "user", parts: [{ type: "text", text: question(n) }] };
    return { answer: await streamed(`${url}/ai-sdk/assistant/chat`, { id: "t", message }), reply: {} };
  },
  "AG-UI": async (url, n) => {
    const messages = [{ id: `u${n}`, role: "user", content: question(n) }];
    const text = await streamed(`${url}/ag-ui/agent/assistant/run`, {
      threadId: "t",
      runId: `r${n}`,
      messages,
    });
    return { answer: text, reply: {} };
  },
  "LangGraph's runs": async (url, n) => {
    const input = { messages: [{ type: "human", content: question(n) }] };
    const body = { assistant_id: "assistant", if_not_exists: "create", input };
    const reply = await asked(`${url}/langgraph/threads/t/runs/wait`, body);
    const all = reply.messages as { type: string }[];
    return { answer: all.slice(all.findLastIndex(({ type }) => type === "human") + 1), reply };
  },
  "OpenAI's chat": async (url, n) => {
    const messages = [{ role: "user", content: question(n) }];
    const reply = await asked(`${url}/v1/chat/completions`, { model: "assistant", messages });
    return { answer: reply.choices, reply };
  },
  "OpenAI's responses": async (url, n, { id }) => {
    const more = id ? { previous_response_id: id } : {};
    const reply = await asked(`${url}/v1/responses`, { model: "assistant", input: question(n), ...more });
    const later = await read(`${url}/v1/responses/${reply.id}`);
    expect(later.output).toEqual(reply.output);
    return { answer: reply.output, reply };
  },
  A2A: async (url, n) => {
    const message = { messageId: `m${n}`, role: "ROLE_USER", contextId: "t", parts: [{ text: question(n) }] };
    const call = { jsonrpc: "2.0", id: n, method: "SendMessage", params: { message } };
    const { result } = (await asked(`${url}/a2a/assistant`, call)) as { result: { task: Json } };
    return { answer: [result.task.artifacts, result.task.status], reply: {} };
  },
  MCP: async (url, n) => {
    const params = {
      name: "run_agent",
      arguments: { agent: "assistant", message: question(n), thread_id: "t" },
    };
    const call = { jsonrpc: "2.0", id: n, method: "tools/call", params };
    return { answer: await post(`${url}/mcp`, call), reply: {} };
  },
};

/** Each turn takes two steps. */
const script: Script = ({ messages }) => {
  const n = messages.filter(({ role }) => role === "user").length;
  if (messages.at(-1)?.role === "tool") return { say: `Answer ${n}.` };
  return {
    say: `Step ${n}.`,
    call: [{ tool: "write_todos", args: { todos: [{ id: "1", title: `Todo ${n}`, status: "pending" }] } }],
  };
};

test.each(Object.entries(WIRES))("over %s, each turn of a thread has its own answer", async (_, ask) => {
  const wires = ["ai-sdk", "ag-ui", "langgraph", "openai", "a2a", "mcp"];
  const { url } = await startServer({ script, agents: FILE_AGENTS, config: { wires } });
  let before: Json = {};
  for (const n of [1, 2, 3]) {
    const { answer, reply } = await ask(url, n, before);
    const told = [...JSON.stringify(answer).matchAll(/(?:Answer|Step) \d/g)].map(String);
    expect([...new Set(told)].toSorted().at(0)).toBe(`Answer ${n}`);
    expect(told.filter((words) => !words.endsWith(` ${n}`))).toEqual([]);
    before = reply;
  }
});

test("a page of the AI SDK that is opened later shows the todos next to the newest answer", async () => {
  const { url } = await startServer({ script, agents: FILE_AGENTS });
  for (const n of [1, 2, 3]) await WIRES["the AI SDK"]?.(url, n, {});
  const history = (await read(`${url}/ai-sdk/assistant/chat/t/messages`)) as unknown as { parts: Json[] }[];
  const todos = history.map(({ parts }) => parts.filter(({ type }) => type === "data-todos"));
  const newest = { type: "data-todos", id: "todos", data: [expect.objectContaining({ content: "Todo 3" })] };
  expect(todos).toEqual([...Array(5).fill([]), [newest]]);
});
