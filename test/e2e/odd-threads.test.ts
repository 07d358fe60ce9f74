// Threads that an earlier version stored as a provider had sent them. They are read, and continued, like any other.

import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { NO_USAGE, userMessage } from "../../src/agent/core/message.ts";
import { ThreadUsage } from "../../src/engine/runs/thread-actions.ts";
import { Trace } from "../../src/engine/runs/trace.ts";
import { createSqliteStores } from "../../src/engine/stores/sqlite/index.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import { claimed } from "../engine/stores/fixture.ts";
import { say } from "../support/fake-provider/script.ts";
import { startFakeProvider } from "../support/fake-provider/server.ts";
import { startServer, temporaryFolder } from "../support/server.ts";
import { post } from "../support/sse.ts";

const owner = { tenant: "default", user: "default" };
const stamp = { created_at: new Date().toISOString() };

/** Events as they were written before a provider's values were checked. */
function oddEvents(): StreamEvent[] {
  const usage = { input_tokens: 1.5, cache_read_tokens: Number.NaN, cache_write_tokens: 1e300 };
  const tool_calls = [{ id: 12, name: 7, args: {} }, { id: "b", args: {} }, { args: {} }];
  const assistant = { ...stamp, id: "m2", role: "assistant", content: "", model: "m", tool_calls, usage };
  const result = (id: string, call: object) => ({ ...stamp, id, role: "tool", content: "done", ...call });
  return [
    { event: "run_start", data: { agent: "assistant", model: "m", attempt: 1 } },
    { event: "on_message", data: { message: userMessage("hello") } },
    { event: "on_chat_model_start", name: "m", data: { message_id: "m2", model: "m" } },
    { event: "on_chat_model_end", name: "m", data: { message_id: "m2", stop_reason: "tool_use", usage } },
    { event: "on_message", data: { message: assistant } },
    { event: "on_tool_start", name: 7, data: { call_id: 12, args: {} } },
    { event: "on_tool_end", name: 7, data: { call_id: 12, output: "done", duration_ms: null } },
    { event: "on_message", data: { message: result("m3", { tool_call_id: 12, name: 7 }) } },
    { event: "on_message", data: { message: result("m4", { tool_call_id: "b" }) } },
    { event: "on_message", data: { message: result("m5", {}) } },
    { event: "done", data: { status: "success", stop_reason: "end_turn", usage } },
  ] as unknown as StreamEvent[];
}

async function folderWithOddThread(): Promise<{ dir: string; run: string }> {
  const dir = await temporaryFolder();
  const stores = createSqliteStores({ dataDir: join(dir, "data") });
  const { lease } = await claimed(stores, "t1", { owner, agent: "assistant" });
  for (const event of oddEvents()) await stores.events.append(lease, [event]);
  await stores.close();
  return { dir, run: lease.run_id };
}

const WIRES = [
  { name: "anthropic", model: "claude-sonnet-4-5", path: "" },
  { name: "openai", model: "gpt-5-mini", path: "/v1" },
];

test("every route that reads such a thread responds with values that match the contract", async () => {
  const { dir, run } = await folderWithOddThread();
  const log: string[] = [];
  const logger = pino({ level: "warn" }, { write: (line: string) => log.push(line) });
  const { url } = await startServer({ dir, logger, config: { store: "sqlite" } });
  const read = async (path: string) => {
    const response = await fetch(`${url}${path}`);
    expect({ path, status: response.status }).toEqual({ path, status: 200 });
    return response.json();
  };

  const { items } = (await read("/threads/t1/messages")) as { items: unknown[] };
  expect(items).toMatchObject([
    { role: "user" },
    {
      tool_calls: [
        { id: "12", name: "7" },
        { id: "b", name: "" },
        { id: "", name: "" },
      ],
      usage: { ...NO_USAGE, input_tokens: 2, cache_write_tokens: Number.MAX_SAFE_INTEGER },
    },
    { role: "tool", tool_call_id: "12", name: "7" },
    { role: "tool", tool_call_id: "b", name: "" },
    { role: "tool" },
  ]);
  expect(await read("/threads/t1/state")).toMatchObject({ messages: items, version: 5 });
  expect(await read("/threads/t1/runs")).toMatchObject({ items: [{ id: run, usage: { input_tokens: 2 } }] });
  expect(await read(`/threads/t1/runs/${run}`)).toMatchObject({ usage: { output_tokens: 0 } });
  Trace.parse(await read(`/threads/t1/runs/${run}/trace`));
  ThreadUsage.parse(await read("/threads/t1/usage"));
  for (const path of ["/usage", "/threads", "/threads/t1"]) await read(path);

  // Once for each route, however often it is read.
  await read("/threads/t1/messages");
  const lines = () => log.map((line) => JSON.parse(line));
  await expect
    .poll(() => lines().filter(({ route }) => route === "/threads/:thread_id/messages"))
    .toEqual([expect.objectContaining({ level: 40, paths: expect.arrayContaining(["tool_calls.0.id"]) })]);
});

describe.each(WIRES)("with a provider on the wire of $name", ({ name, model, path }) => {
  test("can continue such a thread", async () => {
    const provider = await startFakeProvider();
    try {
      const { dir } = await folderWithOddThread();
      const agents = `
agents:
  assistant:
    model: { provider: ${name}, model: ${model}, base_url: "${provider.url}${path}", api_key: k }
`;
      const { url } = await startServer({ dir, agents, realModels: true, config: { store: "sqlite" } });
      provider.enqueue({ blocks: [say("Welcome back.")] });
      const events = await (await post(`${url}/threads/t1/runs`, { input: "and now?" })).ended();
      expect(events.at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
      expect(provider.requests().map(({ status }) => status)).toEqual([200]);
    } finally {
      await provider.close();
    }
  });
});
