import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/agent/core/tool.ts";
import type { TraceSpan } from "../../src/engine/runs/trace.ts";
import { gate, gated, WITH_GATE } from "../support/gate.ts";
import { type ServerOptions, startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";

async function traced(options: ServerOptions) {
  const { url } = await startServer(options);
  const viewer = await post(`${url}/threads/t/runs`, { input: "go" });
  const path = `${url}${viewer.headers.get("location")?.replace("/events", "/trace")}`;
  const trace = async () => {
    const { spans, is_whole } = (await (await fetch(path)).json()) as {
      spans: TraceSpan[];
      is_whole: boolean;
    };
    expect(is_whole).toBe(true);
    return spans;
  };
  return { viewer, path, trace, url };
}

const usage = { input_tokens: 7, output_tokens: 2, cache_read_tokens: 0, cache_write_tokens: 0 };

test("hooks and tools can record their own spans and events in the trace of their run", async () => {
  const lines: { msg: string; run_id?: string; [key: string]: unknown }[] = [];
  const logger = pino({ level: "debug" }, { write: (line: string) => lines.push(JSON.parse(line)) });
  const tool = defineTool({
    ...{ name: "look_up", description: "", parameters: z.object({}) },
    execute(_args, _call, run) {
      run.trace?.recordEvent("cache.miss", { key: "a" });
      run.trace?.startSpan("lookup").recordEvent("asked").end();
      return "found";
    },
  });
  const agents = `agents: { assistant: { model: "scripted:test", tools: [look_up] } }`;
  const script = [{ call: [{ tool: "look_up" }] }, { say: "Done." }];
  const { viewer } = await traced({ logger, tools: [tool], agents, script });
  await viewer.ended();
  const run_id = viewer.headers.get("location")?.split("/")[4];
  const own = lines.filter(({ msg }) => msg === "cache.miss" || msg === "lookup");
  expect(own).toEqual([
    expect.objectContaining({ msg: "cache.miss", run_id, key: "a" }),
    expect.objectContaining({ msg: "lookup", run_id, events: [expect.objectContaining({ event: "asked" })] }),
  ]);
});

test("a model call's span contains its cost and the time to its first token", async () => {
  const prices = { "scripted:test": { input: 1, output: 10 } };
  const { viewer, trace } = await traced({
    config: { quotas: { prices } },
    script: [{ say: "Done.", usage: { ...usage, input_tokens: 100, output_tokens: 10 } }],
  });
  await viewer.ended();
  const [run, call] = await trace();
  expect(call).toMatchObject({ name: "llm.call", cost: 200, first_token_ms: expect.any(Number) });
  expect(call?.message_id).toMatch(/^msg_/);
  expect(call?.first_token_ms).toBeLessThanOrEqual(call?.duration_ms ?? 0);
  expect(run).not.toHaveProperty("cost");
});

test("a run and its thread have the sum of their calls' costs", async () => {
  const used = { ...usage, input_tokens: 100, output_tokens: 10 };
  const { viewer, url } = await traced({
    config: { store: "sqlite", quotas: { prices: { "scripted:test": { input: 1, output: 10 } } } },
    script: [
      { call: [{ tool: "write_todos", args: { todos: [] } }], usage: used },
      { say: "Done.", usage: used },
    ],
  });
  await viewer.ended();
  const get = async (path: string) => (await fetch(`${url}/threads/t/${path}`)).json();
  expect(await get("runs")).toMatchObject({ items: [{ usage: { input_tokens: 200, cost: 400 } }] });
  expect(await get("usage")).toMatchObject({ runs: 1, cost: 400 });
  expect(await get("messages")).toMatchObject({ items: [{}, { usage: { cost: 200 } }, {}, {}] });
});

test("without a price, nothing has a cost", async () => {
  const { viewer, trace, url } = await traced({ script: [{ say: "Done." }] });
  await viewer.ended();
  expect(await (await fetch(`${url}/threads/t/usage`)).json()).not.toHaveProperty("cost");
  for (const span of await trace()) expect(span).not.toHaveProperty("cost");
});

describe("the trace of a run", () => {
  const config = { store: "sqlite" };

  test("has a span for the run, each model call and each tool call, with their durations", async () => {
    const long = "x".repeat(2_000);
    const usage = { input_tokens: 7, output_tokens: 600, cache_read_tokens: 0, cache_write_tokens: 0 };
    const { viewer, trace } = await traced({
      config,
      script: [
        { call: [{ tool: "write_file", args: { path: "a.txt", content: long } }, { tool: "nope" }], usage },
        { fail: { code: "model_rejected", message: "No more." } },
      ],
    });
    await viewer.ended();
    const spans = await trace();
    const [run, first, write, nope, second] = spans;
    expect(spans.map(({ name }) => name)).toEqual(["run", "llm.call", "tool.call", "tool.call", "llm.call"]);
    expect(run).toMatchObject({
      agent: "assistant",
      status: "error",
      error: { code: "model_rejected" },
      usage,
    });
    expect(run).not.toHaveProperty("parent_id");
    expect(first).toMatchObject({ model: "scripted:test", stop_reason: "tool_use", usage });
    expect(write).toMatchObject({ tool: "write_file", call_id: "call_1_1" });
    expect(write?.args).toHaveLength(500);
    expect(nope).toMatchObject({ tool: "nope", error: { message: expect.stringMatching(/no tool `nope`/) } });
    expect(second).toMatchObject({ error: { code: "model_rejected", message: "No more." } });
    for (const span of spans) {
      expect(span.duration_ms).toBeGreaterThanOrEqual(0);
      if (span !== run) expect(span.parent_id).toBe(run?.id);
    }
  });

  test("of a run in progress contains the spans so far", async () => {
    const { tool, open, entered } = gate();
    const { viewer, trace } = await traced({ config, script: gated, tools: [tool], agents: WITH_GATE });
    await entered;
    const [run, , call] = await trace();
    expect(call).toMatchObject({ name: "tool.call", tool: "gate" });
    for (const span of [run, call]) expect(span).not.toHaveProperty("duration_ms");
    open();
    await viewer.ended();
    expect((await trace())[0]).toMatchObject({ status: "success", duration_ms: expect.any(Number) });
  });

  test("expires with its events", async () => {
    const { viewer, path } = await traced({
      config: { ...config, retention: { events: "0.05s", sweep: "0.05s" } },
    });
    await viewer.ended();
    await expect.poll(async () => (await fetch(path)).status).toBe(410);
    expect((await fetch(path.replace("/trace", "nope/trace"))).status).toBe(404);
  });
});
