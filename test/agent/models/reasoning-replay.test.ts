import { describe, expect, test } from "vitest";
import {
  type AssistantMessage,
  type Message,
  toolMessage,
  userMessage,
} from "../../../src/agent/core/message.ts";
import type { Model, ModelReply, SystemBlock } from "../../../src/agent/core/model.ts";
import { toWire } from "../../../src/agent/models/anthropic/wire.ts";
import { createModel } from "../../../src/agent/models/index.ts";
import { dataOf } from "../../support/drain.ts";
import { type Block, call, redacted, say, think } from "../../support/fake-provider/script.ts";
import { blocksOf } from "../../support/fake-provider/sent-body.ts";
import { ask, fakeProvider, lastBody, PROVIDERS, request } from "./providers.ts";

const fake = fakeProvider();

/** The reply as the thread keeps it. */
function kept(reply: ModelReply, model: Model): AssistantMessage {
  const { content, tool_calls, reasoning } = reply;
  return {
    ...{ id: "msg_1", created_at: new Date(0).toISOString(), role: "assistant", content, model: model.name },
    ...{ tool_calls: [...tool_calls], reasoning: [...reasoning] },
  };
}

/** One turn that thought, called a tool and has its result; and the model it was. */
async function thoughtful(model: Model, blocks: readonly Block[]): Promise<Message[]> {
  fake.current.enqueue({ blocks });
  const messages = [userMessage("What is in the file?")];
  const { reply } = await ask(model, { messages });
  const reached = reply.tool_calls.map((made) => toolMessage(made, "the content"));
  return [...messages, kept(reply, model), ...reached];
}

const blocks = [think("The user wants the file. "), say("Let me see."), call("read", {}, "call_1")];
const sent = () => JSON.stringify(lastBody(fake.current).messages);

describe.each(PROVIDERS)("$name", ({ model, signsOnly = false }) => {
  const returned = signsOnly ? "thought_signature" : "The user wants the file.";

  test("streams thoughts separately from the text", async () => {
    fake.current.enqueue({ blocks });
    const { events, reply } = await ask(model(fake.current));
    const thought = dataOf(events, "on_chat_model_stream").map((data) =>
      "reasoning_delta" in data ? data.reasoning_delta : "",
    );
    expect(thought.join("")).toBe("The user wants the file. ");
    expect(reply).toMatchObject({
      content: "Let me see.",
      reasoning: [{ text: "The user wants the file. " }],
    });
  });

  test("sends thoughts back within a tool loop", async () => {
    const asked = model(fake.current);
    const messages = await thoughtful(asked, blocks);
    await ask(asked, { messages });
    expect(sent()).toContain(returned);
  });

  test("sends them back even if the user wrote during the tool call", async () => {
    const asked = model(fake.current);
    const messages = [...(await thoughtful(asked, blocks)), userMessage("And hurry!")];
    await ask(asked, { messages });
    expect(sent()).toContain(returned);
  });

  test("leaves them out after the turn", async () => {
    const asked = model(fake.current);
    const [question, answer, result] = await thoughtful(asked, blocks);
    const final = kept({ ...(await ask(asked)).reply, reasoning: [{ text: "Nearly done." }] }, asked);
    const messages = [question, answer, result, final, userMessage("Thanks!")].filter((m) => m !== undefined);
    await ask(asked, { messages });
    expect(sent()).toContain("Let me see.");
    expect(sent()).not.toMatch(/The user wants|Nearly done/);
  });

  test("does not send them to another model", async () => {
    const messages = await thoughtful(model(fake.current), blocks);
    await ask(model(fake.current, { model: "another" }), { messages });
    expect(sent()).not.toContain("The user wants the file.");
  });
});

const [anthropic, openai] = PROVIDERS;

describe("anthropic", () => {
  const claude = (name = "claude-sonnet-4-5", options = {}) => {
    if (!anthropic) throw new Error("unreachable");
    return anthropic.model(fake.current, { model: name, ...options });
  };

  test("returns signed and redacted thoughts unchanged, in their places", async () => {
    const asked = claude("claude-sonnet-4-5", { thinking: 2048 });
    const order = [
      ...[think("First. "), redacted(), say("I begin."), think("Second. ")],
      ...[call("read", { n: 1 }, "call_1"), think("Third. "), call("read", { n: 2 }, "call_2")],
    ];
    const messages = await thoughtful(asked, order);
    await ask(asked, { messages });
    const types = blocksOf(lastBody(fake.current).messages[1] ?? {}).map((block) => block.type);
    expect(types).toEqual([
      ...["thinking", "redacted_thinking", "text", "thinking"],
      ...["tool_use", "thinking", "tool_use"],
    ]);
  });

  test("thinks within a budget that leaves tokens for the answer", async () => {
    await ask(claude("claude-sonnet-4-5", { thinking: 4000, temperature: 0.3 }));
    expect(lastBody(fake.current)).toMatchObject({
      thinking: { type: "enabled", budget_tokens: 4000 },
      max_tokens: 8192 + 4000,
    });
    await ask(claude("claude-sonnet-4-5", { thinking: 4000, max_tokens: 1000 }));
    expect(lastBody(fake.current).max_tokens).toBe(5000);
    await ask(claude("claude-sonnet-4-5", { thinking: 4000, max_tokens: 6000 }));
    expect(lastBody(fake.current).max_tokens).toBe(6000);
  });

  test("does not request thoughts in a loop that began without them", async () => {
    const messages = await thoughtful(claude("claude-3-7-sonnet-20250219"), blocks);
    await ask(claude("claude-sonnet-4-5", { thinking: 2048 }), { messages });
    expect(lastBody(fake.current).thinking).toBeUndefined();
  });

  test("requests an effort from models without a budget", async () => {
    await ask(claude("claude-opus-4-8", { thinking: 10_000, temperature: 0.3 }));
    expect(lastBody(fake.current)).toMatchObject({
      thinking: { type: "adaptive" },
      output_config: { effort: "medium" },
    });
    expect(lastBody(fake.current).temperature).toBeUndefined();
  });

  test("sends a temperature to models that accept one, with the API version that supports it", async () => {
    await ask(claude("claude-sonnet-4-20250514", { temperature: 1.5 }));
    expect(lastBody(fake.current).temperature).toBe(1);
    await ask(claude("claude-fable-5-2", { temperature: 0.3 }));
    expect(lastBody(fake.current).temperature).toBeUndefined();
    expect(fake.current.requests().at(-1)?.headers["anthropic-version"]).not.toBe("2023-06-01");
  });

  test("continues if the messages before a thought have changed", async () => {
    const asked = claude("claude-opus-5-5");
    const messages = await thoughtful(asked, blocks);
    const system: SystemBlock[] = [{ id: "now", text: "It is 10:31 now.", cache: "dynamic" }];
    const { reply } = await ask(asked, { messages, system });
    expect(reply.content).toBe("ok");
    expect(sent()).toContain('"type":"thinking"');
  });
});

describe("openai", () => {
  const gpt = (options = {}) => {
    if (!openai) throw new Error("unreachable");
    return openai.model(fake.current, options);
  };

  test.each([
    [1024, "low"],
    [4096, "medium"],
    [32_000, "high"],
  ])("converts a budget of %i tokens to %s effort", async (thinking, effort) => {
    await ask(gpt({ thinking, temperature: 0.3 }));
    expect(lastBody(fake.current).reasoning_effort).toBe(effort);
    expect(lastBody(fake.current).temperature).toBeUndefined();
  });
});

test("sends unsigned thinking back unchanged to the server that wrote it", async () => {
  const asked = createModel(
    { provider: "anthropic", model: "m", api_key: "k", base_url: fake.current.url },
    {},
  );
  const thought = (signature: object) => ({
    type: "thinking",
    thinking: "The user wants the file.",
    ...signature,
  });
  for (const signature of [{}, { signature: "" }]) {
    fake.current.enqueue({
      raw: [
        { type: "content_block_start", index: 0, content_block: thought(signature) },
        { type: "content_block_start", index: 1, content_block: { type: "tool_use", id: "a", name: "read" } },
        { type: "message_delta", delta: { stop_reason: "tool_use" } },
        { type: "message_stop" },
      ],
    });
    const question = userMessage("What is in the file?");
    const { reply } = await ask(asked, { messages: [question] });
    const message = kept(reply, asked);
    const results = reply.tool_calls.map((made) => toolMessage(made, "the content"));
    const { params } = toWire(request(asked, { messages: [question, message, ...results] }), {
      ...{ model: "m", settings: {}, keepsOwnIds: true },
    });
    expect(params.messages[1]?.content).toContainEqual(thought(signature));
  }
});
