import { describe, expect, test } from "vitest";
import { conversation } from "../../../src/agent/core/message.ts";
import { call, rawCall, say } from "../../support/fake-provider/script.ts";
import { blocksOf } from "../../support/fake-provider/sent-body.ts";
import { ask, fakeProvider, lastBody, PROTOCOLS } from "./providers.ts";

const fake = fakeProvider();

const tools = [
  { name: "read", description: "Reads a file.", parameters: { type: "object", properties: { path: {} } } },
  { name: "write", description: "Writes a file.", parameters: { type: "object", properties: {} } },
];

/** The results of the last request, in the order in which they were sent: id and text. */
function sentResults() {
  return lastBody(fake.current).messages.flatMap((message) => {
    if (message.role === "tool") return [[message.tool_call_id, message.content]];
    return blocksOf(message)
      .filter(({ type }) => type === "tool_result")
      .map((result) => [result.tool_use_id, result.content?.[0]?.text]);
  });
}

describe.each(PROTOCOLS)("$name", ({ family, model }) => {
  test("reads a call without arguments as one with none", async () => {
    fake.current.enqueue({ blocks: [rawCall("read", "", "call_1")] });
    const { reply } = await ask(model(fake.current), { tools });
    expect(reply.tool_calls).toEqual([{ id: "call_1", name: "read", args: {} }]);
  });

  test("sends the input of a call, even if it is empty", async () => {
    const { messages } = conversation()
      .user("go")
      .assistant("", { id: "call_1", name: "read", args: {} })
      .tool("call_1", "read", "done");
    await ask(model(fake.current), { messages });
    const assistant = lastBody(fake.current).messages[1];
    const input = blocksOf(assistant ?? {})[0]?.input;
    expect(family === "anthropic" ? input : assistant?.tool_calls?.[0]?.function.arguments).toEqual(
      family === "anthropic" ? {} : "{}",
    );
  });

  test("sends results in the order of their calls", async () => {
    const { messages } = conversation()
      .user("go")
      .assistant(
        "",
        { id: "call_1", name: "read", args: {} },
        { id: "call_2", name: "read", args: {} },
        { id: "call_3", name: "write", args: {} },
      )
      .tool("call_3", "write", "three")
      .tool("call_1", "read", "one")
      .tool("call_2", "read", "two");
    await ask(model(fake.current), { messages });
    expect(sentResults()).toEqual([
      ["call_1", "one"],
      ["call_2", "two"],
      ["call_3", "three"],
    ]);
  });

  test("tells the model which calls failed", async () => {
    const { messages } = conversation()
      .user("go")
      .assistant("", { id: "call_1", name: "read", args: {} }, { id: "call_2", name: "read", args: {} })
      .tool("call_1", "read", "", "There is no such file.")
      .tool("call_2", "read", "half of it", "The disk failed.");
    await ask(model(fake.current), { messages });
    const last = lastBody(fake.current).messages;
    if (family === "anthropic") {
      expect(last[2]?.content).toMatchObject([
        { is_error: true, content: [{ text: "There is no such file." }] },
        { is_error: true, content: [{ text: "The disk failed." }, { text: "half of it" }] },
      ]);
    } else {
      expect(last.slice(2)).toMatchObject([
        { content: "Error: There is no such file." },
        { content: "Error: The disk failed.\nhalf of it" },
      ]);
    }
  });

  test("offers tools whose schema is less complete than the provider requires", async () => {
    await ask(model(fake.current), { tools: [{ name: "now", description: "The time.", parameters: {} }] });
    expect(fake.current.requests().at(-1)?.status).toBe(200);
  });

  test("keeps the calls of a reply that ran out of tokens, with the last one marked as cut off", async () => {
    const blocks = [call("read", { path: "/a" }, "call_1"), rawCall("write", '{"path": "/b', "call_2")];
    fake.current.enqueue({ blocks, stop: "max_tokens" });
    const { reply } = await ask(model(fake.current), { tools });
    expect(reply.stop_reason).toBe("max_tokens");
    expect(reply.tool_calls).toEqual([
      { id: "call_1", name: "read", args: { path: "/a" } },
      { id: "call_2", name: "write", args: {}, malformed: '{"path": "/b' },
    ]);
  });

  test("does not treat a call cut off before its first argument as one without arguments", async () => {
    fake.current.enqueue({ blocks: [rawCall("delete_all", "", "call_1")], stop: "max_tokens" });
    const { reply } = await ask(model(fake.current), { tools });
    expect(reply.tool_calls).toEqual([{ id: "call_1", name: "delete_all", args: {}, malformed: "" }]);
  });

  test("does not execute a call that the provider withdrew", async () => {
    fake.current.enqueue({ blocks: [say("I will"), call("write", {}, "call_1")], stop: "refusal" });
    const { reply } = await ask(model(fake.current), { tools });
    expect(reply).toMatchObject({ content: "I will", tool_calls: [], stop_reason: "refusal" });
  });
});
