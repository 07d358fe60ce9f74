// What neither API takes, said as OpenAI's own SDK understands it.

import type OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { postJson } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";
import { model, started } from "./responses.ts";

describe("a request is refused in OpenAI's shape", () => {
  const image = "https://example.com/a.png";
  test.each([
    ["tools[0]", { tools: [{ type: "web_search" }] }, "The operator configures"],
    ["text.format", { text: { format: { type: "grammar" } } }, "json_schema"],
    ["prompt", { prompt: { id: "pmpt_1" } }, "The operator configures"],
    ["max_tool_calls", { max_tool_calls: 3 }, "The operator configures"],
    ["tool_choice", { tool_choice: { type: "web_search" } }, "a function of `tools`"],
    ["tool_choice", { tool_choice: { type: "function", name: "x" } }, "names `x`"],
    ["previous_response_id", { previous_response_id: "resp_x", conversation: "c" }, "together"],
    ["background", { background: true, store: false }, "`store: false`"],
    ["input", { input: [] }, "is missing"],
    ["model", { model: "" }, "model: must not be empty"],
    ["metadata", { metadata: "x" }, "metadata"],
    ["input[0]", { input: [7] }, "must be a map"],
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
    ["functions", { functions: [{ name: "f", parameters: {} }] }, "Send `tools`"],
    ["tool_choice", { tool_choice: { type: "function", function: { name: "x" } } }, "names `x`"],
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

  test("or in Anthropic's, if its client sends the request", async () => {
    const { url } = await started([]);
    const { url: locked } = await startServer({ config: { auth: { scheme: "api_key" } } });
    const body = { model, max_tokens: 10, messages: [{ role: "user", content: "hi" }] };
    const headers = { "anthropic-version": "2023-06-01", "x-api-key": "sk-ant-x" };
    for (const [address, sent, status, type, words] of [
      [`${url}/v1/messages`, headers, 404, "not_found_error", "/v1/chat/completions"],
      [`${url}/v1/messages/count_tokens`, {}, 404, "not_found_error", "does not support"],
      [`${url}/v1/chat/completions`, headers, 404, "not_found_error", "There is no model"],
      [`${locked}/v1/messages`, headers, 401, "authentication_error", "API key"],
      [`${locked}/v1/chat/completions`, headers, 401, "authentication_error", "API key"],
    ] as const) {
      const answer = await postJson(address, { ...body, model: "claude" }, { ...sent });
      expect(answer.status, address).toBe(status);
      const message = expect.stringContaining(words);
      expect(await answer.json()).toMatchObject({ type: "error", error: { type, message } });
    }
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
