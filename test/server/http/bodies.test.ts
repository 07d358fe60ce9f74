import { once } from "node:events";
import { connect } from "node:net";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type JsonSize, jsonSize } from "../../../src/lib/json.ts";
import { WireName } from "../../../src/server/config/wire-names.ts";
import { startServer } from "../../support/server.ts";

const record = (keys: number, value: unknown) =>
  Object.fromEntries(Array.from({ length: keys }, (_, index) => [`k${index}`, value]));

const send = async (url: string, body: unknown, method = "POST") => {
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method, headers, body: JSON.stringify(body) });
  return { status: response.status, problem: (await response.json()) as { detail: string; details: object } };
};

test("a body with more keys and values than allowed is refused with the limit and their number", async () => {
  const { url } = await startServer({ config: { limits: { body_entries: 1000 } } });
  const body = { input: "hi", metadata: record(500, 1) };
  expect(await send(`${url}/threads/t/runs`, body)).toMatchObject({
    status: 413,
    problem: {
      code: "payload_too_large",
      detail: "The body has 1004 keys and values; at most 1000 are allowed (limits.body_entries).",
      details: { limit: 1000, entries: 1004 },
    },
  });
});

test("a body of 60,000 keys is refused by default on every route that takes JSON", async () => {
  const { url } = await startServer();
  const body = record(60_000, 1);
  for (const path of ["/threads", "/threads/t/runs", "/tools", "/threads/t/fork"])
    expect(await send(url + path, body)).toMatchObject({ status: 413 });
  expect(await send(`${url}/agents/assistant/overrides`, body, "PATCH")).toMatchObject({ status: 413 });
});

test.each([
  [
    "metadata",
    "/threads",
    "POST",
    { metadata: record(5000, null) },
    /metadata: must have at most 32 keys; it has 5000/,
  ],
  ["headers", "/tools", "POST", { headers: record(5000, 1) }, /must have at most 20 keys; it has 5000/],
  [
    "overrides of hooks",
    "/agents/assistant/overrides",
    "PATCH",
    { hooks: record(5000, 1) },
    /hooks: must have at most 200 keys; it has 5000/,
  ],
  [
    "options of a hook",
    "/agents/assistant/overrides",
    "PATCH",
    { hooks: { todos: record(5000, 1) } },
    /hooks.todos: must have at most 64 keys; it has 5000/,
  ],
])("%s with thousands of invalid keys has one fault", async (_, path, method, body, message) => {
  const { url } = await startServer();
  const { status, problem } = await send(url + path, body, method);
  expect(status).toBe(400);
  expect(JSON.stringify(problem)).toMatch(message);
  expect(JSON.stringify(problem).length).toBeLessThan(2000);
});

test("a body with thousands of unknown keys is answered with the first of them", async () => {
  const { url } = await startServer();
  const { status, problem } = await send(`${url}/threads/t/runs`, record(5000, 1));
  expect(status).toBe(400);
  expect(problem.detail).toContain("unknown key `k0`");
  expect(JSON.stringify(problem)).not.toContain("`k20`");
});

/** A route of each wire, and a body for it with something in a list or map. */
const WIRES: readonly [wire: string, path: string, bodyWith: (value: unknown) => object][] = [
  ["OpenAI's responses", "/v1/responses", (input) => ({ model: "assistant", input })],
  ["OpenAI's chat", "/v1/chat/completions", (messages) => ({ model: "assistant", messages })],
  [
    "LangGraph's messages",
    "/langgraph/threads/t/runs/wait",
    (messages) => ({ assistant_id: "assistant", input: { messages } }),
  ],
  ["LangGraph's input", "/langgraph/threads/t/runs/wait", (input) => ({ assistant_id: "assistant", input })],
  ["AG-UI's messages", "/ag-ui/agent/assistant/run", (messages) => ({ threadId: "t", runId: "r", messages })],
  ["the AI SDK's messages", "/ai-sdk/assistant/chat", (messages) => ({ id: "t", messages })],
  [
    "A2A's parts",
    "/a2a/assistant",
    (parts) => ({
      jsonrpc: "2.0",
      id: 1,
      method: "SendMessage",
      params: { message: { messageId: "m", role: "ROLE_USER", parts } },
    }),
  ],
  [
    "MCP's arguments",
    "/mcp",
    (args) => ({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "assistant", arguments: { args } },
    }),
  ],
];
const everyWire = () => startServer({ config: { wires: WireName.options } });

async function refusal(url: string, body: string): Promise<string> {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const response = await fetch(url, { method: "POST", headers, body });
  return response.text();
}

const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

test.each(WIRES)("%s cannot be nested more than 64 deep", async (_, path, bodyWith) => {
  const { url } = await everyWire();
  const body = JSON.stringify(bodyWith("NESTED")).replace('"NESTED"', nested(10_000));
  expect(await refusal(url + path, body)).toContain("must not be nested more than 64 levels deep");
});

test.each(WIRES)(
  "%s can have five times as many keys and values as other bodies",
  async (_, path, bodyWith) => {
    const { url } = await everyWire();
    const refused = await refusal(url + path, JSON.stringify(bodyWith(record(60_000, 1))));
    expect(refused).toMatch(/The body has 1200\d\d keys and values; at most 100000 are allowed/);
    const taken = await refusal(url + path, JSON.stringify(bodyWith(Array(6).fill(record(5_000, 1)))));
    expect(taken).not.toContain("keys and values");
  },
);

test.each(WIRES)("a map in %s can have 10,000 keys", async (_, path, bodyWith) => {
  const { url } = await everyWire();
  const refused = await refusal(url + path, JSON.stringify(bodyWith(record(10_001, 1))));
  expect(refused).toContain("A map of the body has 10001 keys; at most 10000 are allowed.");
  const taken = await refusal(url + path, JSON.stringify(bodyWith([record(9_000, 1), record(9_000, 1)])));
  expect(taken).not.toContain("A map of the body");
});

const FAULTY = { type: 1, role: 1, content: [{ type: 1 }], parts: [1], text: 1 };

test.each(WIRES)("%s with thousands of faults is refused for the first ones", async (_, path, bodyWith) => {
  const { url } = await everyWire();
  const refused = await refusal(url + path, JSON.stringify(bodyWith(Array(900).fill(FAULTY))));
  const [, more = "0"] = /\(and (\d+) more\)/.exec(refused) ?? [];
  expect(Number(more)).toBeLessThan(100);
  expect(refused.length).toBeLessThan(5000);
});

const LONG = "x".repeat(500_000);
const tool = (more: object) => ({ threadId: "t", runId: "r", messages: [], tools: [{ name: "a", ...more }] });

test.each([
  ["a text as AG-UI's schema", "/ag-ui/agent/assistant/run", tool({ parameters: LONG }), /must be a map/],
  ["a long name of AG-UI's", "/ag-ui/agent/assistant/run", tool({ name: LONG }), /at most 256 characters/],
  [
    "a long name of the AI SDK's",
    "/ai-sdk/assistant/chat",
    { id: "t", tools: { [LONG]: {} } },
    /at most 256/,
  ],
  [
    "5,000 of the AI SDK's",
    "/ai-sdk/assistant/chat",
    { id: "t", tools: record(5000, {}) },
    /at most 64 keys/,
  ],
])("a page's tool is refused before it is parsed: %s", async (_, path, body, message) => {
  const { url } = await startServer();
  const headers = { "content-type": "application/json" };
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  expect([response.status, text]).toEqual([400, expect.stringMatching(message)]);
  expect(text.length).toBeLessThan(2000);
});

test("a result for no call is refused before its body is read", async () => {
  const { url } = await startServer();
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.write(
    "POST /tool-results/tr_0 HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n{",
  );
  const [answer] = (await once(socket, "data")) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1.1 404 /);
  socket.destroy();
});

test("the size of a JSON text is that of its value", () => {
  const sizeOf = (value: unknown): JsonSize => {
    if (typeof value !== "object" || value === null) return { entries: 0, widest: 0, depth: 0 };
    const members = Array.isArray(value) ? value : Object.entries(value).flat();
    const inner = members.map(sizeOf);
    return {
      entries: Math.max(1, members.length) + inner.reduce((sum, { entries }) => sum + entries, 0),
      widest: Math.max(Array.isArray(value) ? 0 : members.length / 2, ...inner.map(({ widest }) => widest)),
      depth: 1 + Math.max(0, ...inner.map(({ depth }) => depth)),
    };
  };
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6, stringUnit: fc.constantFrom(...'\\"{}[],:a\n') }), (value) => {
      expect(jsonSize(Buffer.from(JSON.stringify(value, null, 1)))).toEqual(sizeOf(value));
    }),
  );
});

test("a text that closes more than it opens counts as one map, however long it is", () => {
  const text = Buffer.from("]:".repeat(500_000));
  expect(jsonSize(text)).toEqual({ entries: 500_000, widest: 500_000, depth: 0 });
});
