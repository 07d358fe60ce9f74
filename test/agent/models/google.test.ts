// What Gemini needs that others refuse: signatures of calls, thoughts by a field of their own, hints in the body of errors.

import { describe, expect, test } from "vitest";
import {
  type AssistantMessage,
  assistantMessage,
  type Message,
  toolMessage,
  userMessage,
} from "../../../src/agent/core/message.ts";
import { createModel } from "../../../src/agent/models/index.ts";
import { call, rawCall, say, think } from "../../support/fake-provider/script.ts";
import { ask, failing, fakeProvider, KEY, lastBody } from "./providers.ts";

const fake = fakeProvider();
const NAME = "gemini:gemini-3-flash";

const gemini = (options = {}) =>
  createModel(
    {
      ...{ provider: "gemini", model: "gemini-3-flash", api_key: KEY },
      ...{ base_url: `${fake.current.url}/v1beta/openai`, ...options },
    },
    {},
  );

/** A turn whose reply thought and called two tools, with their results. */
async function turn(): Promise<Message[]> {
  fake.current.enqueue({
    blocks: [think("Both files. "), call("read", { n: 1 }, "call_1"), call("read", { n: 2 }, "call_2")],
  });
  const { reply } = await ask(gemini(), { messages: [userMessage("Read both.")] });
  const said: AssistantMessage = {
    ...assistantMessage(reply.content, ...reply.tool_calls),
    model: NAME,
    reasoning: [...reply.reasoning],
  };
  return [userMessage("Read both."), said, ...reply.tool_calls.map((made) => toolMessage(made, "text"))];
}

const sentCalls = () => lastBody(fake.current).messages.flatMap((message) => message.tool_calls ?? []);

describe("a tool loop with Gemini", () => {
  test("continues with the signature of the call that has one, without thoughts as text", async () => {
    await ask(gemini(), { messages: await turn() });
    expect(fake.current.requests().at(-1)?.status).toBe(200);
    const [first, second] = sentCalls();
    const signed = { google: { thought_signature: expect.not.stringContaining("skip") } };
    expect(first?.extra_content).toMatchObject(signed);
    expect(second).not.toHaveProperty("extra_content");
    expect(JSON.stringify(lastBody(fake.current))).not.toContain("Both files.");
  });

  test("continues after another model's calls, which have no signature", async () => {
    const messages = [
      userMessage("go"),
      assistantMessage("", { id: "a", name: "read", args: {} }),
      toolMessage({ id: "a", name: "read" }, "done"),
    ];
    expect((await ask(gemini(), { messages })).reply.content).toBe("ok");
  });
});

describe("a Gemini thought", () => {
  test("is not part of its text", async () => {
    fake.current.enqueue({ blocks: [think("Let me <b>think</b>. "), say("Hello there")] });
    const { reply } = await ask(gemini());
    expect(reply).toMatchObject({
      content: "Hello there",
      reasoning: [{ text: "Let me <b>think</b>. " }],
    });
  });

  test("that never came takes nothing from the text", async () => {
    fake.current.enqueue({ blocks: [say("</thought> is a closing tag.")] });
    expect((await ask(gemini())).reply.content).toBe("</thought> is a closing tag.");
  });

  test.each([
    ["gemini-2.5-pro", { thinking_budget: 5000, include_thoughts: true }],
    ["gemini-3-flash", { thinking_level: "medium", include_thoughts: true }],
  ])("is requested for %s", async (model, thinking_config) => {
    await ask(gemini({ model, thinking: 5000 }));
    expect(lastBody(fake.current).extra_body).toEqual({ google: { thinking_config } });
  });
});

test("a malformed call that Gemini withdrew is requested again", async () => {
  fake.current.enqueue({
    raw: [
      { choices: [{ index: 0, delta: {}, finish_reason: "function_call_filter: MALFORMED_FUNCTION_CALL" }] },
      "[DONE]",
    ],
  });
  expect(await failing(gemini())).toMatchObject({ code: "model_overloaded" });
});

test("a retry time in Gemini's body is respected", async () => {
  fake.current.enqueue({ fail: "rate_limit", retrySeconds: 3.5 });
  expect((await failing(gemini())).details).toMatchObject({ retry_after_ms: 3500 });
});

test("a prompt that Gemini blocks fails the call, and an answer that it stops is a refusal", async () => {
  fake.current.enqueue({ fail: "content_filter" }, { blocks: [rawCall("x", "{}", "c")], stop: "refusal" });
  expect((await failing(gemini())).code).toBe("model_rejected");
  expect((await ask(gemini())).reply).toMatchObject({ tool_calls: [], stop_reason: "refusal" });
});

test("a key can be in either of Google's variables", async () => {
  for (const env of [{ GEMINI_API_KEY: "one-key" }, { GOOGLE_API_KEY: "one-key" }]) {
    const spec = {
      provider: "gemini",
      model: "gemini-3-flash",
      base_url: `${fake.current.url}/v1beta/openai`,
    };
    await ask(createModel(spec, env));
    expect(fake.current.requests().at(-1)?.headers.authorization).toBe("Bearer one-key");
  }
});
