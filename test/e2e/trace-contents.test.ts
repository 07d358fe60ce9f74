// What a collector gets of conversations where `traces.contents` asks for it.

import { expect, test } from "vitest";
import { z } from "zod";
import { type ReceivedSpan, startCollector } from "../support/collector.ts";
import type { ServerOptions } from "../support/server.ts";
import { post } from "../support/sse.ts";
import { traced } from "../support/traced-server.ts";

const config = { traces: { contents: true } };

/** The spans of runs with these inputs, one after the other in one thread. */
async function spansOf(inputs: readonly string[], options: ServerOptions): Promise<readonly ReceivedSpan[]> {
  const { url: endpoint, spans, faults } = await startCollector();
  const { url, app } = await traced(endpoint, options);
  for (const input of inputs) await (await post(`${url}/threads/t1/runs`, { input })).ended();
  await app.close();
  expect(faults).toEqual([]);
  return spans;
}

const all = (spans: readonly ReceivedSpan[], name: string) =>
  spans.filter((span) => span.name === name).map(({ attributes }) => attributes);

const read = (json: unknown): unknown => JSON.parse(String(json));
const list = (json: unknown) => z.array(z.unknown()).parse(read(json));
const text = (content: string) => ({ type: "text", content });

test("spans contain the prompt, the messages, the answer, and the tools' input and output", async () => {
  const args = { todos: [{ id: "1", title: "Look", status: "pending" }] };
  const calls = [
    { id: "c1", tool: "write_todos", args },
    { id: "c2", tool: "no_such_tool", args: {} },
  ];
  const script = [{ say: "First.", call: calls }, { say: "Done." }];
  const agents = `agents: { assistant: { model: "scripted:test", system_prompt: "You are brief." } }`;
  const spans = await spansOf(["Hello"], { script, agents, config });
  const asked = { role: "user", parts: [text("Hello")] };
  const done = { role: "assistant", parts: [text("Done.")], finish_reason: "stop" };

  const [agent] = all(spans, "invoke_agent assistant");
  expect(read(agent?.["gen_ai.input.messages"])).toEqual([asked]);
  expect(read(agent?.["gen_ai.output.messages"])).toEqual([done]);
  expect(agent).not.toHaveProperty(["gen_ai.system_instructions"]);

  const [first, second] = all(spans, "chat test");
  expect(read(first?.["gen_ai.system_instructions"])).toContainEqual(text("You are brief."));
  const parts = calls.map(({ id, tool, args }) => ({ type: "tool_call", id, name: tool, arguments: args }));
  const spoken = { role: "assistant", parts: [text("First."), ...parts] };
  expect(read(first?.["gen_ai.output.messages"])).toEqual([{ ...spoken, finish_reason: "tool_call" }]);
  const tools = calls.map(({ tool }) => all(spans, `execute_tool ${tool}`)[0]);
  expect(tools.map((tool) => read(tool?.["gen_ai.tool.call.arguments"]))).toEqual([args, {}]);
  const results = tools.map((tool) => tool?.["gen_ai.tool.call.result"]);
  expect(results).toEqual([expect.stringContaining("1 todos"), expect.stringContaining("no_such_tool")]);
  const told = calls.map(({ id }, index) => ({
    role: "tool",
    parts: [{ type: "tool_call_response", id, response: results[index] }],
  }));
  const sent = list(second?.["gen_ai.input.messages"]);
  expect(sent.slice(0, 2)).toEqual([asked, spoken]);
  // In the order in which they came.
  expect(sent.slice(2)).toHaveLength(2);
  expect(sent).toEqual(expect.arrayContaining(told));
  expect(read(second?.["gen_ai.output.messages"])).toEqual([done]);
});

test("long texts are cut, and the oldest messages of a long conversation are left out", async () => {
  const long = "x".repeat(20_000);
  const spans = await spansOf([long, long, long, `last ${long}`], { script: () => ({ say: long }), config });
  const attributes = all(spans, "chat test").at(-1);
  const messages = list(attributes?.["gen_ai.input.messages"]);
  expect(String(attributes?.["gen_ai.input.messages"]).length).toBeLessThanOrEqual(32_100);
  expect(messages.at(-1)).toEqual({ role: "user", parts: [text(`last ${"x".repeat(7_995)}…`)] });
  expect(messages.length + Number(attributes?.["skein.input.messages_left_out"])).toBe(7);
  const [answer] = list(attributes?.["gen_ai.output.messages"]);
  expect(answer).toHaveProperty("parts", [text(`${"x".repeat(8_000)}…`)]);
});

test("without the setting, no span contains any of it", async () => {
  const script = [
    { call: [{ tool: "write_todos", args: { todos: [], note: "swordfish" } }] },
    { say: "swordfish" },
  ];
  const spans = await spansOf(["swordfish"], { script });
  expect(spans).toHaveLength(4);
  expect(JSON.stringify(spans)).not.toContain("swordfish");
});
