// Streams of the LangGraph wire in places that are hard: two processes, long threads, pages of another site, lost events.

import { Client } from "@langchain/langgraph-sdk";
import { afterAll, describe, expect, test } from "vitest";
import type { Turn } from "../../../src/agent/models/scripted.ts";
import { heldAfter } from "../../support/gate.ts";
import { needing } from "../../support/needing.ts";
import { startRedis } from "../../support/redis.ts";
import { startServer } from "../../support/server.ts";
import { all, type Frame, said } from "./client.ts";

const redis = await startRedis();
afterAll(() => redis?.close());

const words = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");

const textIn = (frames: readonly Frame[]) =>
  frames
    .filter(({ event }) => event === "messages")
    .map(({ data }) => (data as [{ content: string }])[0].content)
    .join("");

needing(redis, "redis-server").describe("of two replicas", () => {
  test("one process continues the stream that the other has started: every word once", async () => {
    const config = { store: "redis", redis: { url: redis?.url } };
    const { model, release } = heldAfter("word5", [{ say: words }]);
    const [one, other] = [await startServer({ config, model }), await startServer({ config, model })];
    const asked: string[] = [];
    const client = new Client({
      apiUrl: `${one.url}/langgraph`,
      apiKey: "",
      callerOptions: {
        fetch: async (input: string | URL | Request, init?: RequestInit) => {
          const { pathname, search } = new URL(String(input));
          asked.push(`${init?.method} ${pathname}`);
          if (init?.method === "GET") return fetch(`${other.url}${pathname}${search}`, init);
          const response = await fetch(input, init);
          let seen = "";
          const cut = new TransformStream<Uint8Array, Uint8Array>({
            transform(chunk, controller) {
              controller.enqueue(chunk);
              seen += Buffer.from(chunk).toString();
              if (!/word5\b/.test(seen)) return;
              controller.error(new TypeError("terminated"));
              release();
            },
          });
          return new Response(response.body?.pipeThrough(cut) ?? null, response);
        },
      },
    });
    const stream = client.runs.stream("t1", "assistant", {
      input: said("go"),
      streamMode: ["values", "messages-tuple"],
      ifNotExists: "create",
    });
    const frames = await all(stream);
    expect(textIn(frames)).toBe(words);
    expect(asked.map((each) => each.replace(/run_\w+/, "R"))).toEqual([
      "POST /langgraph/threads/t1/runs/stream",
      "GET /langgraph/threads/t1/runs/R/stream",
    ]);
    expect(new Set(frames.map(({ id }) => id)).size).toBe(frames.length);
  });
});

describe("on a long thread", () => {
  const STEPS = 20;
  const calls = Array.from({ length: STEPS }, (): Turn => ({ call: [{ tool: "list_agents" }] }));

  async function steps(streamMode: ("values" | "messages-tuple")[]) {
    const agents = `
agents:
  assistant: { model: scripted:test, subagents: [helper] }
  helper: { description: Helps., model: scripted:test }
`;
    const { url } = await startServer({
      agents,
      script: [{ say: "x".repeat(400_000) }, ...calls, { say: "Done." }],
    });
    const client = new Client({ apiUrl: `${url}/langgraph`, apiKey: "" });
    await client.runs.wait("t1", "assistant", { input: said("write much"), ifNotExists: "create" });
    const frames = await all(client.runs.stream("t1", "assistant", { input: said("look"), streamMode }));
    return frames.filter(({ event }) => event === "values");
  }

  test("a client that receives messages in pieces gets complete states only at the beginning and the end", async () => {
    const states = await steps(["values", "messages-tuple"]);
    expect(states).toHaveLength(2);
    expect(JSON.stringify(states.at(-1)?.data)).toContain('"content":"Done."');
  });

  test("a client that receives nothing else gets one with every message", async () => {
    expect(await steps(["values"])).toHaveLength(2 * STEPS + 2);
  });
});

test("a history that a run brings is shown once, not message by message", async () => {
  const { url } = await startServer({ script: [{ say: "I see." }] });
  const client = new Client({ apiUrl: `${url}/langgraph`, apiKey: "" });
  const messages = Array.from({ length: 50 }, (_, index) => ({
    type: "human" as const,
    content: `${index}`,
  }));
  const frames = await all(
    client.runs.stream(null, "assistant", { input: { messages }, streamMode: "values" }),
  );
  const lengths = frames
    .filter(({ event }) => event === "values")
    .map(({ data }) => (data as { messages: object[] }).messages.length);
  expect(lengths).toEqual([1, 50, 51]);
});

test("a page of another site can read the headers that it needs to reconnect", async () => {
  const { url } = await startServer({ config: { cors: { origins: ["https://chat.example.com"] } } });
  const headers = { origin: "https://chat.example.com" };
  const preflight = await fetch(`${url}/langgraph/threads/t1/runs/stream`, {
    method: "OPTIONS",
    headers: {
      ...headers,
      "access-control-request-method": "POST",
      "access-control-request-headers": "content-type,x-api-key,last-event-id",
    },
  });
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get("access-control-allow-headers")?.toLowerCase()).toContain("x-api-key");
  const response = await fetch(`${url}/langgraph/threads/t1/runs/stream`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({
      assistant_id: "assistant",
      if_not_exists: "create",
      input: said("go"),
      stream_mode: ["values", "messages-tuple"],
      stream_subgraphs: true,
    }),
  });
  await response.text();
  const exposed = response.headers.get("access-control-expose-headers") ?? "";
  expect(exposed).toContain("Location");
  expect(exposed).toContain("Content-Location");
  expect(response.headers.get("content-location")).toMatch(/^\/threads\/t1\/runs\/run_\w+$/);
  expect(response.headers.get("location")).toBe(
    `${response.headers.get("content-location")}/stream?stream_mode=values&stream_mode=messages-tuple&stream_subgraphs=true`,
  );
});

test("a stream whose events are no longer kept shows the thread", async () => {
  const { url } = await startServer({
    config: { store: "sqlite", retention: { events: "0.05s", sweep: "0.02s" } },
    script: [{ say: "Kept." }],
  });
  const client = new Client({ apiUrl: `${url}/langgraph`, apiKey: "" });
  await client.runs.wait("t1", "assistant", { input: said("go"), ifNotExists: "create" });
  const [run] = await client.runs.list("t1");
  const joined = () =>
    all(client.runs.joinStream("t1", run?.run_id ?? "", { streamMode: ["messages-tuple"] }));
  await expect.poll(async () => (await joined()).map(({ event }) => event)).toEqual(["metadata", "end"]);
  const frames = await all(client.runs.joinStream("t1", run?.run_id ?? "", { streamMode: ["values"] }));
  expect(frames.map(({ event }) => event)).toEqual(["metadata", "values", "end"]);
  expect(frames[1]?.data).toMatchObject({ messages: [{ content: "go" }, { content: "Kept." }] });
});
