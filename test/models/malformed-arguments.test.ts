import { describe, expect, test } from "vitest";
import { assistantMessage, toolMessage, userMessage } from "../../src/core/message.ts";
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

  test("goes on after such a call", async () => {
    const bad = { id: "call_1", name: "read", args: {}, malformed: '{"path": ' };
    const messages = [
      userMessage("read it"),
      assistantMessage("", bad),
      toolMessage(bad, "", "The arguments are not a JSON object. Send them again."),
    ];
    const { reply } = await ask(model(fake.current), { messages });
    expect(reply.content).toBe("ok");
  });

  test("reads an argument named __proto__ as any other", async () => {
    fake.current.enqueue({ blocks: [rawCall("read", '{"__proto__": {"admin": true}}', "call_1")] });
    const { reply } = await ask(model(fake.current));
    expect(Object.keys(reply.tool_calls[0]?.args ?? {})).toEqual(["__proto__"]);
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });
});
