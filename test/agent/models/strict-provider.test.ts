// The fake provider is only worth something if it refuses what the vendors refuse.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { fakeProvider } from "./providers.ts";

const fake = fakeProvider();

const user = (...content: unknown[]) => ({ role: "user", content });
const assistant = (...content: unknown[]) => ({ role: "assistant", content });
const text = (text: string, more = {}) => ({ type: "text", text, ...more });
const use = (id: string, more = {}) => ({ type: "tool_use", id, name: "read", input: {}, ...more });
const result = (tool_use_id: string, content: unknown = "done", more = {}) => ({
  ...{ type: "tool_result", tool_use_id, content, ...more },
});
const cached = { cache_control: { type: "ephemeral" } };
const hi = user(text("hi"));

async function post(path: string, body: object, headers = {}) {
  const response = await fetch(fake.current.url + path, {
    method: "POST",
    headers: { authorization: "Bearer sk", "anthropic-version": "2026-10-21", ...headers },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

describe("anthropic", () => {
  const good = { model: "claude-sonnet-4-5", max_tokens: 100, stream: true, messages: [hi] };
  const thinking = { type: "enabled", budget_tokens: 1024 };

  test("answers valid requests", async () => {
    const messages = [hi, assistant(use("a"), use("b")), user(result("b"), result("a"), text("continue"))];
    const { status, text: stream } = await post("/v1/messages", { ...good, messages });
    expect(status).toBe(200);
    expect(stream.match(/^event: .*/gm)).toEqual(
      [
        ...["message_start", "content_block_start", "ping", "content_block_delta"],
        ...["content_block_stop", "message_delta", "message_stop"],
      ].map((event) => `event: ${event}`),
    );
  });

  test.each<[string, object]>([
    ["max_tokens: Field required", { max_tokens: undefined }],
    ["top_k: Extra inputs are not permitted", { top_k: 5 }],
    ["temperature: Extra inputs", { temperature: 1 }],
    ["at least one message", { messages: [] }],
    ['first message must use the "user" role', { messages: [assistant(text("hi")), hi] }],
    ["does not support assistant message prefill", { messages: [hi, assistant(text("I"))] }],
    ["non-empty content", { messages: [user()] }],
    ["non-whitespace text", { messages: [user(text(" \n"))] }],
    ["`tool_use` ids were found without `tool_result` blocks", { messages: [hi, assistant(use("a")), hi] }],
    [
      "`tool_use` ids were found without",
      { messages: [hi, assistant(use("a")), user(text("x"), result("a"))] },
    ],
    ["`tool_use` ids were found without", { messages: [hi, assistant(use("a")), hi, user(result("a"))] }],
    ["unexpected `tool_use_id`", { messages: [user(result("a"))] }],
    ["unexpected `tool_use_id`", { messages: [hi, assistant(use("a")), user(result("a"), result("a"))] }],
    ["ids must be unique", { messages: [hi, assistant(use("a"), use("a")), user(result("a"))] }],
    ["should match pattern", { messages: [hi, assistant(use("a b")), user(result("a b"))] }],
    ["input", { messages: [hi, assistant(use("a", { input: undefined })), user(result("a"))] }],
    ["cannot be empty", { messages: [hi, assistant(use("a")), user(result("a", "", { is_error: true }))] }],
    [".signature: Field required", { messages: [hi, assistant({ type: "thinking", thinking: "x" }), hi] }],
    [
      "Invalid `signature` in `thinking` block",
      { messages: [hi, assistant({ type: "thinking", thinking: "x", signature: "forged" }, text("y")), hi] },
    ],
    [
      "Expected `thinking`",
      { max_tokens: 9000, thinking, messages: [hi, assistant(use("a")), user(result("a"))] },
    ],
    ["`max_tokens` must be greater than", { thinking }],
    ["not supported for this model", { model: "claude-opus-4-8", max_tokens: 9000, thinking }],
    ["adaptive thinking is not supported", { thinking: { type: "adaptive" } }],
    [
      "block_binding: Extra inputs",
      { model: "claude-opus-5-5", thinking: { type: "adaptive", block_binding: {} } },
    ],
    [
      "media_type",
      {
        messages: [
          user({ type: "image", source: { type: "base64", media_type: "image/bmp", data: "AAAA" } }),
        ],
      },
    ],
    ["maximum of 4 blocks", { messages: [user(...Array.from({ length: 5 }, () => text("x", cached)))] }],
    ["must be unique", { tools: [1, 2].map(() => ({ name: "a", input_schema: { type: "object" } })) }],
    ["input_schema.type", { tools: [{ name: "a", input_schema: {} }] }],
  ])("refuses with `%s`", async (words, change) => {
    const { status, text: body } = await post("/v1/messages", { ...good, ...change });
    expect(status).toBe(400);
    expect(JSON.parse(body)).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
    expect(JSON.parse(body).error.message.toLowerCase()).toContain(words.toLowerCase());
  });

  test("refuses requests without a key", async () => {
    expect((await post("/v1/messages", good, { authorization: "" })).status).toBe(401);
  });
});

describe("openai", () => {
  const good = { model: "gpt-5-mini", stream: true, messages: [{ role: "user", content: "hi" }] };
  const calling = (id: string, args = "{}", name = "read") => ({
    role: "assistant",
    content: null,
    tool_calls: [{ id, type: "function", function: { name, arguments: args } }],
  });
  const tool = (tool_call_id: string) => ({ role: "tool", tool_call_id, content: "done" });
  const [ask] = good.messages;

  test("answers valid requests", async () => {
    const { status, text: stream } = await post("/v1/chat/completions", {
      ...good,
      messages: [ask, calling("a"), tool("a")],
    });
    expect(status).toBe(200);
    expect(stream).toMatch(/^data: \{.*data: \[DONE\]\n\n$/s);
    expect(stream).not.toContain("event:");
  });

  test.each<[string, object]>([
    ["top_k: Extra inputs are not permitted", { top_k: 5 }],
    ["must alternate", { messages: [{ role: "assistant", content: "hi" }, ask] }],
    ["Expected last role", { messages: [ask, { role: "assistant", content: "I" }] }],
    ["did not have response messages: a", { messages: [ask, calling("a")] }],
    ["did not have response messages: a", { messages: [ask, calling("a"), ask, tool("a")] }],
    ["must be a response to a preceeding message", { messages: [ask, tool("a")] }],
    ["must be a response to a preceeding message", { messages: [ask, calling("a"), tool("a"), tool("a")] }],
    ["Duplicate", { messages: [ask, calling("a"), tool("a"), calling("a"), tool("a")] }],
    ["expected a string, got null", { messages: [ask, { role: "assistant", content: null }, ask] }],
    ["maximum length 40", { messages: [ask, calling("x".repeat(41)), tool("x".repeat(41))] }],
    ["pattern", { messages: [ask, calling("a", "{}", "files.read"), tool("a")] }],
    ["'temperature' is not supported", { temperature: 0.2, reasoning_effort: "low" }],
    ["not a JSON object", { messages: [ask, calling("a", '{"path":'), tool("a")] }],
    ["empty string", { messages: [{ role: "user", content: " " }] }],
    [
      "image_url",
      {
        messages: [
          { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/bmp;base64,AA" } }] },
        ],
      },
    ],
    [
      "properties",
      { tools: [{ type: "function", function: { name: "a", parameters: { type: "object" } } }] },
    ],
  ])("refuses with `%s`", async (words, change) => {
    const { status, text: body } = await post("/v1/chat/completions", { ...good, ...change });
    expect(status).toBe(400);
    expect(JSON.parse(body).error).toMatchObject({ type: "invalid_request_error" });
    expect(JSON.parse(body).error.message).toContain(words);
  });

  test("refuses requests without a key", async () => {
    expect((await post("/v1/chat/completions", good, { authorization: "" })).status).toBe(401);
  });
});

test("runs as a separate process", async () => {
  const main = fileURLToPath(new URL("../../support/fake-provider/main.ts", import.meta.url));
  const child = spawn(process.execPath, [main, "--tokens", "3", "--batch", "2"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill());
  const [url] = await once(child.stdout.setEncoding("utf8"), "data");
  const response = await fetch(`${url.trim()}/v1/chat/completions`, {
    ...{ method: "POST", headers: { authorization: "Bearer sk" } },
    body: JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "hi" }] }),
  });
  expect((await response.text()).match(/"content":"token "/g)).toHaveLength(3);
  child.kill();
  expect(await once(child, "exit")).toEqual([0, null]);
});
