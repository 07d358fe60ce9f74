// The fake provider is only worth something if it refuses what the vendors refuse.

import { expect, test } from "vitest";
import { anthropicFault } from "../../support/fake-provider/anthropic-strict.ts";
import { openaiFault } from "../../support/fake-provider/openai-strict.ts";

const asked = (body: object) => ({
  ...{ url: "/", text: "", headers: { "anthropic-version": "2026-10-21" }, body },
});

const user = (...content: unknown[]) => ({ role: "user", content });
const assistant = (...content: unknown[]) => ({ role: "assistant", content });
const text = (text: string, more = {}) => ({ type: "text", text, ...more });
const use = (id: string, more = {}) => ({ type: "tool_use", id, name: "read", input: {}, ...more });
const result = (tool_use_id: string, content: unknown = "done", more = {}) => ({
  ...{ type: "tool_result", tool_use_id, content, ...more },
});
const hi = user(text("hi"));
const cached = text("x", { cache_control: { type: "ephemeral" } });
const bitmap = { type: "image", source: { type: "base64", media_type: "image/bmp", data: "AAAA" } };
const thinking = { type: "enabled", budget_tokens: 1024 };
const thought = { type: "thinking", thinking: "x" };

test.each<[words: string, change: { messages?: object[]; [key: string]: unknown }]>([
  ["max_tokens: Field required", { max_tokens: undefined }],
  ["top_k: Extra inputs are not permitted", { top_k: 5 }],
  ["temperature: Extra inputs", { temperature: 1 }],
  ["at least one message", { messages: [] }],
  ['first message must use the "user" role', { messages: [assistant(text("hi")), hi] }],
  ["does not support assistant message prefill", { messages: [hi, assistant(text("I"))] }],
  ["non-empty content", { messages: [user()] }],
  ["non-whitespace text", { messages: [user(text(" \n"))] }],
  ["ids were found without `tool_result`", { messages: [hi, assistant(use("a")), hi] }],
  ["ids were found without", { messages: [hi, assistant(use("a")), user(text("x"), result("a"))] }],
  ["ids were found without", { messages: [hi, assistant(use("a")), hi, user(result("a"))] }],
  ["unexpected `tool_use_id`", { messages: [user(result("a"))] }],
  ["unexpected `tool_use_id`", { messages: [hi, assistant(use("a")), user(result("a"), result("a"))] }],
  ["ids must be unique", { messages: [hi, assistant(use("a"), use("a")), user(result("a"))] }],
  ["should match pattern", { messages: [hi, assistant(use("a b")), user(result("a b"))] }],
  ["input", { messages: [hi, assistant(use("a", { input: undefined })), user(result("a"))] }],
  ["cannot be empty", { messages: [hi, assistant(use("a")), user(result("a", "", { is_error: true }))] }],
  [".signature: Field required", { messages: [hi, assistant(thought), hi] }],
  ["Invalid `signature`", { messages: [hi, assistant({ ...thought, signature: "x" }, text("y")), hi] }],
  [
    "Expected `thinking`",
    { max_tokens: 9000, thinking, messages: [hi, assistant(use("a")), user(result("a"))] },
  ],
  ["`max_tokens` must be greater than", { thinking }],
  ["not supported for this model", { model: "claude-opus-4-8", max_tokens: 9000, thinking }],
  ["adaptive thinking is not supported", { thinking: { type: "adaptive" } }],
  ["Extra inputs", { model: "claude-opus-5-5", thinking: { type: "adaptive", block_binding: {} } }],
  ["media_type", { messages: [user(bitmap)] }],
  ["maximum of 4 blocks", { messages: [user(cached, cached, cached, cached, cached)] }],
  ["must be unique", { tools: [1, 2].map(() => ({ name: "a", input_schema: { type: "object" } })) }],
  ["input_schema.type", { tools: [{ name: "a", input_schema: {} }] }],
])("Anthropic's refuses with `%s`", (words, change) => {
  const good = { model: "claude-sonnet-4-5", max_tokens: 100, stream: true, messages: [hi] };
  expect(anthropicFault(asked(good))).toBeUndefined();
  expect(anthropicFault(asked({ ...good, ...change }))?.toLowerCase()).toContain(words.toLowerCase());
});

const ask = { role: "user", content: "hi" };
const said = (content: string | null) => ({ role: "assistant", content });
const calling = (id: string, args = "{}", name = "read") => ({
  ...{ ...said(null), tool_calls: [{ id, type: "function", function: { name, arguments: args } }] },
});
const tool = (tool_call_id: string) => ({ role: "tool", tool_call_id, content: "done" });
const image = { type: "image_url", image_url: { url: "data:image/bmp;base64,AA" } };
const long = "x".repeat(41);

test.each<[words: string, change: object]>([
  ["top_k: Extra inputs are not permitted", { top_k: 5 }],
  ["must alternate", { messages: [said("hi"), ask] }],
  ["Expected last role", { messages: [ask, said("I")] }],
  ["did not have response messages: a", { messages: [ask, calling("a")] }],
  ["did not have response messages: a", { messages: [ask, calling("a"), ask, tool("a")] }],
  ["must be a response to a preceeding message", { messages: [ask, tool("a")] }],
  ["must be a response to a preceeding message", { messages: [ask, calling("a"), tool("a"), tool("a")] }],
  ["Duplicate", { messages: [ask, calling("a"), tool("a"), calling("a"), tool("a")] }],
  ["expected a string, got null", { messages: [ask, said(null), ask] }],
  ["maximum length 40", { messages: [ask, calling(long), tool(long)] }],
  ["pattern", { messages: [ask, calling("a", "{}", "files.read"), tool("a")] }],
  ["'temperature' is not supported", { temperature: 0.2, reasoning_effort: "low" }],
  ["not a JSON object", { messages: [ask, calling("a", '{"path":'), tool("a")] }],
  ["empty string", { messages: [{ role: "user", content: " " }] }],
  ["image_url", { messages: [{ role: "user", content: [image] }] }],
  ["properties", { tools: [{ type: "function", function: { name: "a", parameters: { type: "object" } } }] }],
])("OpenAI's refuses with `%s`", (words, change) => {
  const good = { model: "gpt-5-mini", stream: true, messages: [ask] };
  expect(openaiFault(asked(good))).toBeUndefined();
  expect(openaiFault(asked({ ...good, ...change }))).toContain(words);
});
