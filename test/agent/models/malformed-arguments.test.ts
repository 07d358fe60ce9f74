import { describe, expect, test } from "vitest";
import { z } from "zod";
import { lastContent, toolMessages } from "../../../src/agent/core/message.ts";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { openaiReply } from "../../../src/agent/models/openai/reply.ts";
import { play } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";
import { rawCall } from "../../support/fake-provider/script.ts";
import { ask, fakeProvider, PROTOCOLS } from "./providers.ts";

const fake = fakeProvider();

describe.each(PROTOCOLS)("$name", ({ model }) => {
  test.each([
    ["not JSON", "path=/tmp"],
    ["half an object", '{"path": "/tmp'],
    ["an object and a list", '{"a": 1}[2]'],
    ["an object and half of another", '{"a": 1}{"b": '],
    ["a list", "[1, 2]"],
    ["a text", '"path"'],
    ["a number", "7"],
    ["a text of a list", '"[1]"'],
    ["nested too deeply", `{"a":${"[".repeat(70)}${"]".repeat(70)}}`],
    ["more than twenty thousand keys and values", JSON.stringify({ a: Array(20_001).fill(0) })],
  ])("passes on arguments that are %s as the model wrote them", async (_, json) => {
    fake.current.enqueue({ blocks: [rawCall("read", json, "call_1")] });
    const { reply } = await ask(model(fake.current));
    expect(reply.tool_calls).toEqual([{ id: "call_1", name: "read", args: {}, malformed: json }]);
  });

  test.each([
    ["null", "null", {}],
    ["an empty list", "[]", {}],
    ["an empty text", '""', {}],
    ["raw line ends and tabs in a text", '{"path": "a\nb\tc"}', { path: "a\nb\tc" }],
    ["raw line ends behind a backslash", '{"path": "a \\\nb"}', { path: "a \\\nb" }],
    ["escapes that JSON does not know", '{"path": "\\d+\\.\\\\\\u00e9\\u12"}', { path: "\\d+\\.\\é\\u12" }],
    ["an empty object first", '{}{"path": "a"}', { path: "a" }],
    ["an empty object last", '{"path": "a"} {}', { path: "a" }],
    ["null first", 'null{"path": "a"}', { path: "a" }],
    ["all of it twice", '{"path": "a"}{"path": "a"}', { path: "a" }],
    ["all of it twice with raw line ends", '{"path": "a\n"}{"path": "a\n"}', { path: "a\n" }],
    ["a text of JSON", JSON.stringify('{"path": "a"}'), { path: "a" }],
    ["what Python writes for nothing", "None", {}],
    ["in a fence of Markdown", '```json\n{"path": "a"}\n```', { path: "a" }],
    ["before the tag that ends a call", '{"path": "a"}\n</tool_call>', { path: "a" }],
    ["before the token that ends a call", '{"path": "<b>"}<|call|><|im_end|>', { path: "<b>" }],
    ["a comma too many", '{"path": "a, }",}', { path: "a, }" }],
  ])("reads arguments that are %s as intended", async (_, json, args) => {
    fake.current.enqueue({ blocks: [rawCall("read", json, "call_1")] });
    const { reply } = await ask(model(fake.current));
    expect(reply.tool_calls).toEqual([{ id: "call_1", name: "read", args }]);
  });

  test("makes a call from each object if a call's arguments are several different ones", async () => {
    const json = '{"path": "a"}{"path": "b"} {}\n{"path": "a"}{"path": "c}{"}';
    fake.current.enqueue({
      blocks: [rawCall("read", json, "call_1"), rawCall("write", '{"path": "d"}', "call_2")],
    });
    const { events, reply } = await ask(model(fake.current));
    const made = reply.tool_calls.map(({ name, args }) => [name, args.path]);
    expect(made).toEqual([
      ["read", "a"],
      ["read", "b"],
      ["read", "c}{"],
      ["write", "d"],
    ]);
    const ids = reply.tool_calls.map(({ id }) => id);
    expect([ids[0], ids[3], new Set(ids).size]).toEqual(["call_1", "call_2", 4]);
    // Those who watch see the same calls.
    const shown = new Map<number, { id?: string | undefined; name?: string | undefined; args: string }>();
    for (const data of dataOf(events, "on_chat_model_stream")) {
      if (!("tool_call" in data)) continue;
      const { index, args_delta, ...begin } = data.tool_call;
      const before = shown.get(index) ?? { ...begin, args: "" };
      shown.set(index, { ...before, args: before.args + args_delta });
    }
    const seen = [...shown.values()].map(({ id, name, args }) => ({ id, name, args: JSON.parse(args) }));
    expect(seen).toHaveLength(4);
    expect(reply.tool_calls).toEqual(expect.arrayContaining(seen));
  });

  test("limits the calls from one text like those of one reply", async () => {
    const json = Array.from({ length: 600 }, (_, path) => JSON.stringify({ path })).join("");
    fake.current.enqueue({ blocks: [rawCall("read", json, "call_1")] });
    await expect(ask(model(fake.current))).rejects.toThrow("the reply contains more than 512 tool calls");
  });

  test("does not run the tool, tells the model the error, and continues", async () => {
    const ran: unknown[] = [];
    const read = defineTool({
      ...{ name: "read", description: "", parameters: z.object({ path: z.string().optional() }) },
      execute: (args) => {
        ran.push(args);
        return "read";
      },
    });
    fake.current.enqueue({ blocks: [rawCall("read", '{"path": ', "call_1")] });
    const { messages, outcome } = await play({ model: model(fake.current), tools: [read] });
    expect(ran).toEqual([]);
    expect(toolMessages(messages)).toMatchObject([
      {
        error:
          "The arguments are not valid JSON: Unexpected end of JSON input. Send them again as one JSON object.",
      },
    ]);
    expect(outcome.status).toBe("success");
    expect(lastContent(messages)).toBe("ok");
  });

  test("reads an argument named __proto__ like any other", async () => {
    fake.current.enqueue({ blocks: [rawCall("read", '{"__proto__": {"admin": true}}', "call_1")] });
    const { reply } = await ask(model(fake.current));
    expect(Object.keys(reply.tool_calls[0]?.args ?? {})).toEqual(["__proto__"]);
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });
});

test("long arguments in small pieces take a time in proportion to their length", () => {
  const reader = openaiReply();
  const take = (args: string) =>
    reader.take(
      {
        choices: [
          { delta: { tool_calls: [{ index: 0, id: "a", function: { name: "write", arguments: args } }] } },
        ],
      },
      [],
    );
  take('{"text":"');
  for (let count = 0; count < 100_000; count++) take("x".repeat(64));
  take('"}');
  reader.close();
  expect(reader.finish([]).tool_calls).toMatchObject([{ args: { text: "x".repeat(100_000 * 64) } }]);
});
