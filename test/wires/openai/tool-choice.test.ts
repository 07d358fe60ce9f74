// Functions that a client forces, allows or forbids, and settings that it names, over both of OpenAI's APIs.

import type OpenAI from "openai";
import { describe, expect, test } from "vitest";
import type { ModelRequest } from "../../../src/agent/core/model.ts";
import { postJson, threadsOf } from "../../support/native.ts";
import { model, started } from "./responses.ts";

const parameters = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" } },
  required: ["name", "age"],
};
const PERSON = { name: "Person", description: "A person that is named.", parameters };
const OTHER = { name: "Other", description: "Something else.", parameters: {} };
const ADA = { name: "Ada", age: 36 };
const messages = [{ role: "user" as const, content: "Ada is 36." }];
const CHAT = {
  ...{ model, messages },
  tools: [PERSON, OTHER].map((each) => ({ type: "function" as const, function: each })),
  tool_choice: { type: "function" as const, function: { name: "Person" } },
};
const RESPONSE = {
  ...{ model, input: "Ada is 36." },
  tools: [PERSON, OTHER].map((each) => ({ type: "function" as const, strict: false, ...each })),
  tool_choice: { type: "function" as const, name: "Person" },
};
const madeIn = ({ choices: [choice] }: OpenAI.ChatCompletion) =>
  (choice?.message.tool_calls ?? []).flatMap((call) =>
    call.type === "function" ? [[call.function.name, JSON.parse(call.function.arguments)]] : [],
  );

describe("a function that the client forces", () => {
  test.each([
    ["says what fits", [{ say: JSON.stringify(ADA) }]],
    ["says what does not fit, and then what does", [{ say: "Ada." }, { say: JSON.stringify(ADA) }]],
    ["calls the function", [{ call: [{ tool: "Person", args: ADA }] }]],
    [
      "uses a tool of its own first",
      [{ say: "I look.", call: [{ tool: "current_datetime" }] }, { say: JSON.stringify(ADA) }],
    ],
  ])("is called once with valid arguments, streamed and whole, if the agent %s", async (_, script) => {
    const { url, client } = await started([...script, ...script]);
    const whole = await client.chat.completions.create(CHAT);
    expect(madeIn(whole)).toEqual([["Person", ADA]]);
    expect(whole.choices[0]).toMatchObject({ finish_reason: "tool_calls", message: { content: null } });
    const streamed = await client.chat.completions.stream(CHAT).finalChatCompletion();
    expect(madeIn(streamed)).toEqual([["Person", ADA]]);
    await expect.poll(() => threadsOf(url)).toEqual([]);
  });

  test("is an item of a response, without any other text", async () => {
    const { client } = await started([{ say: JSON.stringify(ADA) }, { say: JSON.stringify(ADA) }]);
    for (const response of [
      await client.responses.create(RESPONSE),
      await client.responses.stream(RESPONSE).finalResponse(),
    ]) {
      const [call, ...none] = response.output;
      expect(none).toEqual([]);
      expect(call).toMatchObject({ type: "function_call", name: "Person", status: "completed" });
      expect(call?.type === "function_call" && JSON.parse(call.arguments)).toEqual(ADA);
    }
  });

  test("can be executed by the client, which sends the result with the whole chat", async () => {
    let read = "";
    const { client } = await started(({ messages: all }, call) => {
      read = JSON.stringify(all.map(({ role, content }) => [role, content]));
      return { say: call === 0 ? JSON.stringify(ADA) : "She is." };
    });
    const { choices } = await client.chat.completions.create(CHAT);
    const [id = ""] = (choices[0]?.message.tool_calls ?? []).map((call) => call.id);
    const answer = await client.chat.completions.create({
      ...CHAT,
      tool_choice: "auto",
      messages: [
        ...messages,
        choices[0]?.message as OpenAI.ChatCompletionMessageParam,
        { role: "tool", tool_call_id: id, content: "Ada is known." },
      ],
    });
    expect(answer.choices[0]?.message.content).toBe("She is.");
    expect(JSON.parse(read)).toEqual([
      ["user", "Ada is 36."],
      ["assistant", ""],
      ["tool", "Ada is known."],
    ]);
  });
});

test("continues a named chat with its result", async () => {
  let read: unknown[] = [];
  const { url, clientWith } = await started(({ messages: all }, call) => {
    read = all.map(({ role, content }) => [role, content]);
    return { say: call === 0 ? JSON.stringify(ADA) : "She is." };
  });
  const client = clientWith({ "X-Conversation-Id": "c1" });
  const { choices } = await client.chat.completions.create(CHAT);
  const asked = choices[0]?.message;
  const result = { role: "tool" as const, tool_call_id: asked?.tool_calls?.[0]?.id ?? "", content: "Known." };
  const sent = [...messages, asked as OpenAI.ChatCompletionMessageParam, result];
  const answer = await client.chat.completions.create({ ...CHAT, tool_choice: "auto", messages: sent });
  expect(answer.choices[0]?.message.content).toBe("She is.");
  expect(read).toEqual([
    ...[
      ["user", "Ada is 36."],
      ["assistant", JSON.stringify(ADA)],
      ["assistant", ""],
      ["tool", "Known."],
    ],
  ]);
  expect(await threadsOf(url)).toHaveLength(1);
});

describe("the client's functions", () => {
  const seen = async (change: object, api: "chat" | "responses" = "chat") => {
    let read: ModelRequest | undefined;
    const { client } = await started((request) => {
      read = request;
      return { say: "Well." };
    });
    if (api === "chat")
      await client.chat.completions.create({
        ...CHAT,
        ...change,
      } as OpenAI.ChatCompletionCreateParamsNonStreaming);
    else
      await client.responses.create({
        ...RESPONSE,
        ...change,
      } as OpenAI.Responses.ResponseCreateParamsNonStreaming);
    const names = (read?.tools ?? []).map(({ name }) => name);
    return [names.filter((name) => ["Person", "Other"].includes(name)), read?.settings.tool_choice];
  };
  const only = { mode: "required", tools: [{ type: "function", function: { name: "Person" } }] };

  test.each([
    ["all are offered", "auto", [["Other", "Person"], undefined]],
    ["none is offered", "none", [[], undefined]],
    ["one must be called", "required", [["Other", "Person"], "required"]],
    [
      "those that are allowed are offered",
      { type: "allowed_tools", allowed_tools: only },
      [["Person"], "required"],
    ],
  ])("%s, as tool_choice requests", async (_, tool_choice, right) => {
    expect(await seen({ tool_choice })).toEqual(right);
  });

  test("responses support the same choices", async () => {
    const tool_choice = {
      type: "allowed_tools",
      mode: "auto",
      tools: [{ type: "function", name: "Person" }],
    };
    expect(await seen({ tool_choice }, "responses")).toEqual([["Person"], undefined]);
    expect(await seen({ tool_choice: "required" }, "responses")).toEqual([["Other", "Person"], "required"]);
  });
});

describe("settings of a chat", () => {
  test.each([
    [{ reasoning_effort: "high" }, 16_384],
    [{ reasoning_effort: "minimal" }, 1024],
    [{ reasoning: { effort: "low" } }, 2048],
    [{ reasoning_effort: "none" }, undefined],
    [{}, undefined],
  ])("%j lets the model think for as long", async (settings, thinking) => {
    let read: unknown = "nothing";
    const { url } = await started((request) => {
      read = request.settings.thinking;
      return { say: "Well." };
    });
    await postJson(`${url}/v1/chat/completions`, { model, messages, ...settings });
    expect(read).toBe(thinking);
  });

  test("limit an answer by the newer of their two names", async () => {
    const read: unknown[] = [];
    const { url } = await started((request) => {
      read.push(request.settings.max_tokens);
      return { say: "Well." };
    });
    for (const settings of [{ max_tokens: 7 }, { max_tokens: 7, max_completion_tokens: 8 }])
      await postJson(`${url}/v1/chat/completions`, { model, messages, ...settings });
    expect(read).toEqual([7, 8]);
  });

  test.each([[true], [false]])(
    "without effect are named in a header, even where stream is %s",
    async (stream) => {
      const { url } = await started([{ say: "Well." }, { say: "Well." }]);
      const body = { model, messages, stream, temperature: 1, top_p: 1, stop: ["x"], seed: null, user: "u" };
      const chat = await postJson(`${url}/v1/chat/completions`, body);
      expect(chat.headers.get("x-ignored-parameters")).toBe("top_p, stop");
      await chat.text();
      const response = await postJson(`${url}/v1/responses`, {
        model,
        input: "hi",
        stream,
        truncation: "auto",
      });
      expect(response.headers.get("x-ignored-parameters")).toBe("truncation");
      await response.text();
    },
  );

  test("that are all used cause no header", async () => {
    const { url } = await started([{ say: "Well." }]);
    const chat = await postJson(`${url}/v1/chat/completions`, { model, messages, temperature: 1 });
    expect(chat.headers.has("x-ignored-parameters")).toBe(false);
  });
});
