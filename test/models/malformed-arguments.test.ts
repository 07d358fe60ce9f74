import { describe, expect, test } from "vitest";
import { z } from "zod";
import { lastContent, toolMessages } from "../../src/core/message.ts";
import { defineTool } from "../../src/core/tool.ts";
import { play } from "../support/agent.ts";
import { rawCall } from "../support/fake-provider/script.ts";
import { ask, fakeProvider, PROVIDERS } from "./providers.ts";

const fake = fakeProvider();

describe.each(PROVIDERS)("$name", ({ model }) => {
  test.each([
    ["not JSON", "path=/tmp"],
    ["half an object", '{"path": "/tmp'],
    ["two objects", '{"a": 1}{"b": 2}'],
    ["a list", "[1, 2]"],
    ["a text", '"path"'],
    ["a number", "7"],
    ["a text of a list", '"[1]"'],
    ["nested too deeply", `{"a":${"[".repeat(70)}${"]".repeat(70)}}`],
    ["more than twenty thousand keys and values", JSON.stringify({ a: Array(20_001).fill(0) })],
  ])("hands on arguments that are %s as the model wrote them", async (_, json) => {
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
  ])("reads arguments that are %s as they were meant", async (_, json, args) => {
    fake.current.enqueue({ blocks: [rawCall("read", json, "call_1")] });
    const { reply } = await ask(model(fake.current));
    expect(reply.tool_calls).toEqual([{ id: "call_1", name: "read", args }]);
  });

  test("does not run the tool, tells the model what is wrong, and continues", async () => {
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

  test("reads an argument named __proto__ as any other", async () => {
    fake.current.enqueue({ blocks: [rawCall("read", '{"__proto__": {"admin": true}}', "call_1")] });
    const { reply } = await ask(model(fake.current));
    expect(Object.keys(reply.tool_calls[0]?.args ?? {})).toEqual(["__proto__"]);
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });
});
