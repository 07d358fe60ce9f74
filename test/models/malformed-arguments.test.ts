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
    ["null", "null"],
  ])("hands on arguments that are %s as the model wrote them", async (_, json) => {
    fake.current.enqueue({ blocks: [rawCall("read", json, "call_1")] });
    const { reply } = await ask(model(fake.current));
    expect(reply.tool_calls).toEqual([{ id: "call_1", name: "read", args: {}, malformed: json }]);
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
      { error: "The arguments are not a JSON object. Send them again." },
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
