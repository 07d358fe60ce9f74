// What a person reads about the end of a run, through every door.

import { PassThrough, Writable } from "node:stream";
import { pino } from "pino";
import { expect, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { createFold } from "../../src/client/fold.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import { paintFor } from "../../src/skein/cli/paint.ts";
import { renderer } from "../../src/skein/cli/render.ts";
import { postJson } from "../support/native.ts";
import { startServer } from "../support/server.ts";

const LIMITED = `
agents:
  assistant: { model: "scripted:test", tools: [current_datetime], max_iterations: 2 }
`;
const SENTENCE = "The run stopped after 2 model calls (`max_iterations`). Send a message to continue.";
const IN_JSON = JSON.stringify(SENTENCE);

const messages = [{ id: "u1", role: "user", content: "go" }];
const parts = [{ type: "text", text: "go" }];
const rpc = (method: string, params: object) => ({ jsonrpc: "2.0", id: 1, method, params });

/** Address and body of a request, by what sends it. */
const DOORS: Readonly<
  Record<string, readonly [path: string, body: object, headers?: Record<string, string>]>
> = {
  "the AI SDK": ["/ai-sdk/assistant/chat", { id: "ui", messages: [{ id: "u1", role: "user", parts }] }],
  "AG-UI": [
    "/ag-ui/agent/assistant/run",
    { threadId: "agui", runId: "r1", messages, tools: [], context: [], state: {}, forwardedProps: {} },
  ],
  "LangGraph, streamed": ["/langgraph/runs/stream", { assistant_id: "assistant", input: { messages } }],
  "LangGraph, as a whole": ["/langgraph/runs/wait", { assistant_id: "assistant", input: { messages } }],
  "OpenAI's responses": ["/v1/responses", { model: "assistant", input: "go" }],
  "OpenAI's chat completions": ["/v1/chat/completions", { model: "assistant", messages }],
  A2A: [
    "/a2a/assistant",
    rpc("SendMessage", { message: { messageId: "m1", role: "ROLE_USER", parts: [{ text: "go" }] } }),
    { "a2a-version": "1.0" },
  ],
  MCP: [
    "/mcp",
    rpc("tools/call", { name: "run_agent", arguments: { agent: "assistant", message: "go" } }),
    { accept: "application/json, text/event-stream" },
  ],
};

const limited = (lines: string[] = []) =>
  startServer({
    agents: LIMITED,
    script: () => ({ call: [{ tool: "current_datetime" }] }),
    config: { wires: ["ai-sdk", "openai", "langgraph", "ag-ui", "mcp", "a2a"] },
    logger: pino(
      new Writable({
        write(line, _, next) {
          lines.push(String(line));
          next();
        },
      }),
    ),
  });

test("every wire returns the same sentence about a limit", async () => {
  const { url } = await limited();
  for (const [door, [path, body, headers = {}]] of Object.entries(DOORS)) {
    const shown = await (await postJson(url + path, body, headers)).text();
    expect({ door, shown }).toEqual({ door, shown: expect.stringContaining(SENTENCE) });
  }
});

test("a program that asks later can read why the run stopped", async () => {
  const { url } = await limited();
  const told = async (name: string, args: object) => {
    const call = rpc("tools/call", { name, arguments: args });
    const headers = { accept: "application/json, text/event-stream" };
    return (await postJson(`${url}/mcp`, call, headers)).text();
  };
  const thread_id = "t2";
  await told("run_agent", { agent: "assistant", message: "go", thread_id });
  expect(await told("get_run", { thread_id })).toContain(SENTENCE);
});

test("the event, the run, the page, the terminal and the log show the same sentence about a limit", async () => {
  const lines: string[] = [];
  const { url } = await limited(lines);
  const client = createClient({ baseUrl: url });
  const events: StreamEvent[] = [];
  for await (const event of client.run("t1", {
    agent: "assistant",
    messages: [{ role: "user", content: "go" }],
  }))
    events.push(event);

  const last = events.at(-1);
  expect(last?.event === "done" && last.data).toMatchObject({
    message: SENTENCE,
    details: { message: SENTENCE },
  });
  const render = renderer(paintFor(new PassThrough()));
  const shown = events.map((event) => render(event)).join("");
  expect(shown.endsWith(`\n${SENTENCE}\n`)).toBe(true);
  await expect.poll(() => lines.find((line) => line.includes("run ended at a limit"))).toContain(IN_JSON);

  const live = createFold({ touch: () => {} });
  for (const event of events) live.apply(event);
  const later = createFold({ touch: () => {} });
  const [run] = (await client.runs.of("t1")).items;
  later.begin({ state: await client.threads.state("t1"), run });
  for (const { page } of [live, later])
    expect(page.lane.cells.at(-1)).toMatchObject({ kind: "note", tone: "warning", text: SENTENCE });
});
