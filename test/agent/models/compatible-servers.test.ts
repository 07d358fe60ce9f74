// What servers that speak OpenAI's protocol add to it, leave out of it and ask for.

import { describe, expect, test } from "vitest";
import { assistantMessage, type Message, toolMessage, userMessage } from "../../../src/agent/core/message.ts";
import type { ModelReply, ModelSettings } from "../../../src/agent/core/model.ts";
import { createModel } from "../../../src/agent/models/index.ts";
import { openaiModel } from "../../../src/agent/models/openai/client.ts";
import { dialectOf } from "../../../src/agent/models/openai/dialect.ts";
import { openaiReply } from "../../../src/agent/models/openai/reply.ts";
import { toWire } from "../../../src/agent/models/openai/wire.ts";
import { ask, fakeProvider, request } from "./providers.ts";

const fake = fakeProvider();

const model = openaiModel({
  ...{ name: "openai:m", model: "m", baseUrl: "http://127.0.0.1:1", settings: {} },
  key: { missing: "" },
});
const tools = [{ name: "read", description: "Reads.", parameters: {} }];
const call = { id: "call_0123456789", name: "read", args: {} };

function paramsFor(
  host: string,
  parts: { messages?: Message[]; name?: string; settings?: ModelSettings } = {},
) {
  const { messages = [userMessage("hi")], name = "m", settings = {} } = parts;
  const dialect = dialectOf(`https://${host}/v1`);
  return toWire(request(model, { messages, tools }), { model: name, settings, dialect });
}

/** The reply that a stream of these deltas makes. */
function heard(deltas: readonly object[], finish_reason = "stop"): ModelReply {
  const reader = openaiReply();
  for (const delta of deltas) reader.take({ choices: [{ delta }] }, []);
  reader.take({ choices: [{ delta: {}, finish_reason }] }, []);
  reader.close();
  return reader.finish([]);
}

const calling = (piece: object) => ({ tool_calls: [piece] });

describe("a request", () => {
  test.each([
    ["api.openai.com", "max_completion_tokens"],
    ["eu.api.openai.com", "max_completion_tokens"],
    ["team.openai.azure.com", "max_completion_tokens"],
    ["api.groq.com", "max_tokens"],
    ["openai.com.example.org", "max_tokens"],
  ])("to %s limits its answer by %s", (host, key) => {
    expect(paramsFor(host, { settings: { max_tokens: 100 } })).toHaveProperty(key, 100);
  });

  test("to OpenAI turns reasoning off if a model accepts tools only without it", () => {
    const effort = (name: string, host = "api.openai.com") =>
      paramsFor(host, { name, settings: { thinking: 2048 } }).reasoning_effort;
    expect(["gpt-5.4", "gpt-5.6-terra", "gpt-6"].map((name) => effort(name))).toEqual([
      "none",
      "none",
      "none",
    ]);
    expect(["gpt-5-mini", "gpt-5.1", "o4-mini"].map((name) => effort(name))).toEqual(["low", "low", "low"]);
    expect(effort("gpt-5.6-terra", "openrouter.ai")).toBe("low");
  });

  test("to Mistral contains nothing that Mistral refuses, and only ids that it accepts", () => {
    const params = paramsFor("api.mistral.ai", {
      messages: [userMessage("hi"), assistantMessage("", call), toolMessage(call, "done")],
    });
    expect(params).not.toHaveProperty("stream_options");
    const [, reply, result] = params.messages as { tool_calls?: { id: string }[]; tool_call_id?: string }[];
    expect(reply?.tool_calls?.[0]?.id).toMatch(/^[a-zA-Z0-9]{9}$/);
    expect(result?.tool_call_id).toBe(reply?.tool_calls?.[0]?.id);
  });

  test("to DeepSeek has a thought in every reply, even an empty one", () => {
    const thought = {
      ...assistantMessage("", call),
      model: "openai:m",
      reasoning: [{ text: "Hm.", metadata: { field: "reasoning_content" } }],
    };
    const params = paramsFor("api.deepseek.com", {
      messages: [
        userMessage("hi"),
        assistantMessage("old"),
        userMessage("and?"),
        thought,
        toolMessage(call, "done"),
      ],
    });
    expect(params.messages.filter(({ role }) => role === "assistant")).toMatchObject([
      { reasoning_content: "" },
      { reasoning_content: "Hm." },
    ]);
  });
});

describe("call ids", () => {
  const ids = (host: string, author: string, ...made: string[]) => {
    const turns = made.flatMap((id) => {
      const call = { id, name: "read", args: {} };
      return [{ ...assistantMessage("", call), model: author }, toolMessage(call, "done")];
    });
    const { messages } = paramsFor(host, { messages: [userMessage("hi"), ...turns] });
    const sent = messages.flatMap((message) => ("tool_calls" in message ? (message.tool_calls ?? []) : []));
    const results = messages.flatMap((message) => (message.role === "tool" ? [message.tool_call_id] : []));
    expect(results).toEqual(sent.map(({ id }) => id));
    return results;
  };

  test("are sent back unchanged to the model that created them, because Kimi derives its tools from them", () => {
    const own = ["functions.read:0", "functions.mcp__files__read_text_of_a_long_file:1", "call_1__QUJD+/="];
    expect(ids("llm.example.com", "openai:m", ...own)).toEqual(own);
  });

  test("that occur twice in a thread get the next number, in the format that the model expects", () => {
    const made = ["read:0", "read:0", "read:1", "read:12", "read:12"];
    const sent = ["read:0", "read:1", "read:2", "read:12", "read:13"];
    expect(ids("llm.example.com", "openai:m", ...made)).toEqual(sent);
  });

  test("from other models are replaced with ids that all servers accept", () => {
    const [id] = ids("llm.example.com", "other:m", "functions.read:0");
    expect(id).toMatch(/^[a-zA-Z0-9_-]{1,40}$/);
  });

  test("are replaced with valid ones for a server that is known to be strict", () => {
    for (const host of ["api.openai.com", "api.mistral.ai"])
      expect(ids(host, "openai:m", "functions.read:0")[0]).toMatch(/^[a-zA-Z0-9_-]{1,40}$/);
  });
});

describe("a server's address", () => {
  test.each([
    ["openai", "/v1", "/v1/chat/completions"],
    ["openai", "/v1/", "/v1/chat/completions"],
    ["openai", "/v1/chat/completions", "/v1/chat/completions"],
    ["openai", "/v1/chat/completions/", "/v1/chat/completions"],
    ["anthropic", "", "/v1/messages"],
    ["anthropic", "/v1", "/v1/messages"],
    ["anthropic", "/v1/messages", "/v1/messages"],
  ])("for %s can be given as `%s`", async (provider, path, asked) => {
    const made = createModel(
      { provider, model: "m", api_key: "k", base_url: `${fake.current.url}${path}`, max_tokens: 100 },
      {},
    );
    await ask(made);
    expect(fake.current.requests().at(-1)?.url).toBe(asked);
  });
});

describe("a reply", () => {
  test("can contain calls without an id", () => {
    const reply = heard([calling({ index: 0, function: { name: "read", arguments: "{}" } })]);
    expect(reply.tool_calls[0]?.id).toMatch(/^call_\w{22}$/);
  });

  test("can think in several fields, and receives it back in the same ones", () => {
    for (const field of ["reasoning_content", "reasoning"])
      expect(heard([{ [field]: "Let me " }, { [field]: "see." }]).reasoning).toEqual([
        { text: "Let me see.", metadata: { field } },
      ]);
  });

  test("can think in signed pieces, which are sent back complete", () => {
    const reply = heard(
      [
        { reasoning: "Let me ", reasoning_details: [{ type: "reasoning.text", index: 0, text: "Let me " }] },
        {
          reasoning: "see.",
          reasoning_details: [{ type: "reasoning.text", index: 0, text: "see.", signature: "s1" }],
        },
        { reasoning_details: [{ type: "reasoning.encrypted", index: 1, data: "abc" }] },
        calling({ index: 0, id: "a", function: { name: "read", arguments: "{}" } }),
      ],
      "tool_calls",
    );
    const thread = [
      userMessage("hi"),
      { ...assistantMessage("", ...reply.tool_calls), model: "openai:m", reasoning: [...reply.reasoning] },
      toolMessage({ id: "a", name: "read" }, "done"),
    ];
    expect(paramsFor("openrouter.ai", { messages: thread }).messages[1]).toMatchObject({
      reasoning_details: [
        { type: "reasoning.text", index: 0, text: "Let me see.", signature: "s1" },
        { type: "reasoning.encrypted", index: 1, data: "abc" },
      ],
    });
  });

  test("can consist of parts", () => {
    const reply = heard([
      { content: [{ type: "thinking", thinking: [{ type: "text", text: "Hm." }] }] },
      {
        content: [
          { type: "text", text: "Hello " },
          { type: "text", text: "there" },
        ],
      },
    ]);
    expect(reply).toMatchObject({ content: "Hello there", reasoning: [{ text: "Hm." }] });
  });

  test.each([
    ["thoughts only in its total", { total_tokens: 150 }, 50],
    ["the cache once more in its total", { total_tokens: 180 }, 20],
    ["no total", {}, 20],
  ])("can count %s", (_, total, output) => {
    const reader = openaiReply();
    const prompt_tokens_details = { cached_tokens: 60 };
    const usage = { prompt_tokens: 100, completion_tokens: 20, prompt_tokens_details, ...total };
    reader.take({ choices: [{ delta: { content: "Hi" }, finish_reason: "stop" }], usage }, []);
    reader.close();
    expect(reader.finish([]).usage).toMatchObject({ input_tokens: 100, output_tokens: output });
  });

  test("can be a refusal in a separate field", () => {
    expect(heard([{ refusal: "I cannot " }, { refusal: "do that." }])).toMatchObject({
      content: "I cannot do that.",
      stop_reason: "refusal",
    });
  });
});
