// What neither API takes, said as OpenAI's own SDK understands it.

import type OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { model, started } from "./responses.ts";

describe("a request is refused in OpenAI's shape", () => {
  const image = "https://example.com/a.png";
  test.each([
    ["tools[0]", { tools: [{ type: "web_search" }] }, "configured on the server"],
    ["text.format", { text: { format: { type: "grammar" } } }, "json_schema"],
    ["prompt", { prompt: { id: "pmpt_1" } }, "configured on the server"],
    ["max_tool_calls", { max_tool_calls: 3 }, "configured on the server"],
    ["tool_choice", { tool_choice: "required" }, "only `auto`"],
    ["previous_response_id", { previous_response_id: "resp_x", conversation: "c" }, "together"],
    ["background", { background: true, store: false }, "not stored"],
    ["input", { input: [] }, "there is none"],
    ["input[0]", { input: [{ type: "computer_call" }] }, "not supported"],
    [
      null,
      { input: [{ role: "user", content: [{ type: "input_image", image_url: image }] }] },
      "`data:` URLs",
    ],
  ])("for a response: %s", async (param, change, words) => {
    const { client } = await started([]);
    const body = { model, input: "hi", ...change } as OpenAI.Responses.ResponseCreateParamsNonStreaming;
    const error = await client.responses.create(body).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      status: 400,
      type: "invalid_request_error",
      code: "invalid_request",
      param,
    });
    expect((error as Error).message).toContain(words);
  });

  test.each([
    ["n", { n: 2 }, "only 1"],
    ["response_format", { response_format: { type: "grammar" } }, "json_schema"],
    [
      "messages",
      {
        messages: [
          { role: "user", content: [{ type: "image_url", image_url: { url: "https://example.com/a.png" } }] },
        ],
      },
      "Only `data:` URLs",
    ],
    ["model", { model: "unknown" }, "There is no model"],
  ])("for chat completions: %s", async (_, change, words) => {
    const { client } = await started([]);
    const body = {
      model,
      messages: [{ role: "user", content: "hi" }],
      ...change,
    } as OpenAI.ChatCompletionCreateParamsNonStreaming;
    await expect(client.chat.completions.create(body)).rejects.toThrow(words);
  });

  test("for a model, a response, a conversation and a route that do not exist", async () => {
    const { client } = await started([]);
    const response = `resp_${"x".repeat(22)}_thread`;
    for (const request of [
      () => client.responses.create({ model: "gpt-4", input: "hi" }),
      () => client.responses.create({ model, input: "hi", previous_response_id: response }),
      () => client.responses.create({ model, input: "hi", conversation: "none" }),
      () => client.responses.retrieve(response),
      () => client.responses.retrieve("resp_"),
      () => client.responses.cancel(response),
      () => client.responses.delete(response),
      () => client.responses.inputItems.list(response),
      () => client.conversations.retrieve("none"),
      () => client.conversations.items.list("none"),
      () => client.post("/responses/compact", { body: {} }),
      () => client.post("/responses/input_tokens", { body: {} }),
    ])
      await expect(request()).rejects.toMatchObject({ status: 404, type: "invalid_request_error" });
  });
});
