import type { IncomingHttpHeaders } from "node:http";
import { pipeline } from "node:stream/promises";
import zlib from "node:zlib";
import { Anthropic } from "@anthropic-ai/sdk";
import { OpenAI } from "openai";
import { describe, expect, test } from "vitest";
import { isTransient } from "../../../src/agent/core/errors.ts";
import { failureOf, ProviderError } from "../../../src/agent/models/failure.ts";
import type { Failure } from "../../support/fake-provider/script.ts";
import { httpServer, json, served } from "../../support/hostile.ts";
import { failing, fakeProvider, KEY, PROTOCOLS, PROVIDERS } from "./providers.ts";

const fake = fakeProvider();

const sentKey = (headers: IncomingHttpHeaders) => headers["api-key"] ?? headers.authorization?.slice(7);

describe.each(PROVIDERS)("$name", ({ model }) => {
  test.each<[Failure, string, boolean]>([
    ["auth", "model_auth", false],
    ["quota", "model_auth", false],
    ["not_found", "model_rejected", false],
    ["context_overflow", "context_overflow", false],
    ["too_large", "context_overflow", false],
    ["rate_limit", "model_rate_limited", true],
    ["overloaded", "model_overloaded", true],
    ["server_error", "model_overloaded", true],
  ])("an answer of the kind `%s` is %s", async (fail, code, transient) => {
    fake.current.enqueue({ fail });
    const error = await failing(model(fake.current));
    expect(error.code).toBe(code);
    expect(isTransient(error)).toBe(transient);
    expect(error.details).toMatchObject({ request_id: "req_fake" });
  });

  test("never repeats a key that a server shows", async () => {
    const message = `Incorrect API key provided: ${KEY}, Bearer ${KEY}; also sk-proj-abc****wxyz`;
    const { url } = await httpServer(json({ error: { type: "authentication_error", message } }, 401));
    const error = await failing(model(fake.current, { base_url: url }));
    expect(error.code).toBe("model_auth");
    for (let e: unknown = error; e instanceof Error; e = e.cause)
      expect(`${e.message} ${e.stack} ${JSON.stringify(e)}`).not.toMatch(/0123456789abcdef|abc\*|wxyz/);
  });

  test("never repeats its own key, in any form", async () => {
    const { url } = await httpServer((heard, response) =>
      json({ error: { message: `bad header ${sentKey(heard.headers)}` } }, 400)(heard, response),
    );
    const error = await failing(model(fake.current, { base_url: url, api_key: "correcthorsebatterystaple" }));
    expect(error.message).toContain("bad header [key]");
  });
});

describe.each(PROTOCOLS)("every provider with the protocol of $name", ({ model }) => {
  test("sends one request, because it does not decide on retries", async () => {
    const before = fake.current.requests().length;
    fake.current.enqueue({ fail: "overloaded", headers: { "x-should-retry": "true" } });
    await failing(model(fake.current));
    expect(fake.current.requests().length).toBe(before + 1);
  });

  test.each([
    [{ "retry-after-ms": "1500" }, 1500],
    [{ "retry-after": "2" }, 2000],
    [{ "retry-after": "2", "retry-after-ms": "250" }, 250],
    [{ "retry-after": "-5" }, undefined],
    [{ "retry-after": "soon" }, undefined],
    [{ "retry-after": "999999999" }, 24 * 3600 * 1000],
    [{}, undefined],
  ])("reads the retry time from %j", async (headers, wait) => {
    fake.current.enqueue({ fail: "rate_limit", headers });
    expect((await failing(model(fake.current))).details?.retry_after_ms).toBe(wait);
  });

  test("reads the retry time from a date", async () => {
    const headers = { "retry-after": new Date(Date.now() + 60_000).toUTCString() };
    fake.current.enqueue({ fail: "rate_limit", headers });
    const { details } = await failing(model(fake.current));
    expect(details?.retry_after_ms).toBeGreaterThan(50_000);
    expect(details?.retry_after_ms).toBeLessThanOrEqual(60_000);
  });

  test("names the model, and quotes the provider", async () => {
    fake.current.enqueue({ fail: "not_found" });
    const { message } = await failing(model(fake.current));
    expect(message).toContain(`\`${model(fake.current).name}\``);
    expect(message).toMatch(/\(404\).*(claude|gpt|gemini)-none/);
  });

  test.each([
    [402, "model_auth"],
    [403, "model_auth"],
    [408, "model_timeout"],
    [409, "model_overloaded"],
    [422, "model_rejected"],
    [504, "model_overloaded"],
    [529, "model_overloaded"],
  ])("an answer with status %i is %s", async (status, code) => {
    const { url } = await httpServer(served("text/plain", "no", status));
    expect((await failing(model(fake.current, { base_url: url }))).code).toBe(code);
  });

  test("is unreachable if no server listens at the address", async () => {
    const error = await failing(model(fake.current, { base_url: "http://127.0.0.1:1" }));
    expect(error.code).toBe("model_unreachable");
    expect(error.message).toMatch(/could not be reached or closed the connection: ECONNREFUSED$/);
  });

  test("writes the addresses that a provider names only to the log", async () => {
    const addresses = [
      ...["http://llm.corp.example/v1", "llm.corp.example:8080", "llm.corp.internal", "ollama:11434"],
      ...["10.0.0.5", "10.0.0.5:11434", "fd00::5", "http://10.0.0.5/internal?x=1", "//10.0.0.5/internal"],
    ];
    const said = `Model gpt-4.1 at 12:30:45: ${addresses.join(" ")} are down.`;
    const { url } = await httpServer(json({ error: { message: said } }, 400));
    const error = await failing(model(fake.current, { base_url: url }));
    const hidden = addresses.map(() => "[address]").join(" ");
    expect(error.message).toContain(`: Model gpt-4.1 at 12:30:45: ${hidden} are down.`);
    expect(error.cause).toMatchObject({ message: said });
  });

  test("does not follow redirects", async () => {
    const location = `${fake.current.url}/v1/messages`;
    const server = await httpServer(served("text/plain", "", 307, { location }));
    expect((await failing(model(fake.current, { base_url: server.url }))).code).toBe("model_rejected");
    expect(server.heard).toHaveLength(1);
  });

  test.each([
    ["a web page", "text/html", "<html><body>Welcome</body></html>", "model_rejected"],
    ["a reply that is no stream", "application/json", '{"id": "1", "content": []}', "model_rejected"],
    [
      "an error with status 200",
      "application/json",
      '{"error": {"type": "rate_limit_error"}}',
      "model_rate_limited",
    ],
  ])("does not accept %s as an answer", async (_, type, body, code) => {
    const { url } = await httpServer(served(type, body));
    expect((await failing(model(fake.current, { base_url: url }))).code).toBe(code);
  });

  test.each([
    ["not JSON", "data: {oops\n\n"],
    [
      "JSON of another kind",
      'data: {"type": "content_block_delta"}\n\ndata: {"choices": 7}\n\ndata: {"choices": [{"delta": {"content": 7}}]}\n\n',
    ],
    ["nothing", ""],
    ["never an end", `data: ${"x".repeat(9 * 1024 * 1024)}`],
  ])("closes a stream that contains %s", async (_, body) => {
    const { url } = await httpServer(served("text/event-stream", body));
    expect((await failing(model(fake.current, { base_url: url }))).code).toBe("model_unreachable");
  });

  test.each<[string, (text: string) => Buffer]>([
    ["gzip", zlib.gzipSync],
    ["deflate", zlib.deflateSync],
    ["br", zlib.brotliCompressSync],
    ["zstd", zlib.zstdCompressSync],
  ])("reads an answer compressed with %s even though it was not requested", async (encoding, pack) => {
    const body = pack('{"error": {"message": "Come back later."}}');
    const headers = { "content-encoding": encoding };
    const { url } = await httpServer(served("application/json", body, 503, headers));
    const error = await failing(model(fake.current, { base_url: url }));
    expect(error).toMatchObject({ code: "model_overloaded" });
    expect(error.message).toContain("Come back later.");
  });

  test.each([
    ["compress", Buffer.from("data: x\n\n"), "is compressed as `compress`, which was not requested"],
    ["gzip", Buffer.from("data: x\n\n"), "does not match its content-encoding (`gzip`)"],
    ["identity", zlib.gzipSync("data: x\n\n"), "is compressed with gzip, but its headers do not say so"],
  ])(
    "reports for an answer labelled `%s` what it cannot read, and does not retry",
    async (encoding, body, said) => {
      const headers = { "content-encoding": encoding };
      const { url } = await httpServer(served("text/event-stream", body, 200, headers));
      const error = await failing(model(fake.current, { base_url: url }));
      expect(error.message).toContain(said);
      expect(isTransient(error)).toBe(false);
    },
  );

  // Each event is one of both protocols.
  const long = "x".repeat(64 * 1024);
  const growing = (delta: object, chatDelta: object) =>
    Array(200).fill({ type: "content_block_delta", index: 0, delta, choices: [{ delta: chatDelta }] });
  const call = (_: unknown, index: number) => ({
    ...{ type: "content_block_start", index },
    content_block: { type: "tool_use", id: `${index}`, name: "a" },
    choices: [{ delta: { tool_calls: [{ index, id: `${index}`, function: { name: "a" } }] } }],
  });

  test.each([
    ["text", growing({ type: "text_delta", text: long }, { content: long })],
    ["thinking", growing({ type: "thinking_delta", thinking: long }, { reasoning_content: long })],
    [
      "arguments",
      growing(
        { type: "input_json_delta", partial_json: long },
        { tool_calls: [{ index: 0, function: { arguments: long } }] },
      ),
    ],
    ["calls", Array.from({ length: 600 }, call)],
  ])("closes a reply that is %s without an end, and does not retry", async (_, events) => {
    fake.current.enqueue({ raw: events, batch: 20 });
    const error = await failing(model(fake.current));
    expect(error.message).toMatch(/the reply (is longer than|contains more than)/);
    expect(isTransient(error)).toBe(false);
  });

  test("shows nothing of an error page and only the beginning of a long error", async () => {
    const message = "long ".repeat(9999);
    const { url } = await httpServer([
      served("text/html", "<!DOCTYPE html><html>502 Bad gateway</html>", 502),
      json({ error: { message } }, 502),
    ]);
    const asked = model(fake.current, { base_url: url });
    const [page, long] = [await failing(asked), await failing(asked)];
    expect(page.message).not.toContain("<");
    expect(long.code).toBe("model_overloaded");
    expect(long.message.length).toBeLessThan(700);
  });
});

describe("a conversation that is too long", () => {
  test.each([
    ["Anthropic", "prompt is too long: 213462 tokens > 200000 maximum"],
    [
      "Anthropic",
      "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
    ],
    [
      "OpenAI",
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
    ],
    [
      "OpenAI",
      "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ],
    [
      "OpenRouter",
      "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens",
    ],
    ["vLLM", "The decoder prompt (length 5000) is longer than the maximum model length of 4096."],
    ["llama.cpp", "the request exceeds the available context size. try increasing the context size"],
    ["Ollama", "the input length exceeds the context length"],
    ["Ollama", "prompt too long; exceeded max context length by 12 tokens"],
    ["LM Studio", "The number of tokens to keep from the initial prompt is greater than the context length"],
    [
      "Mistral",
      "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    ],
    ["Gemini", "The input token count (1197213) exceeds the maximum number of tokens allowed (1048576)."],
    ["Groq", "Please reduce the length of the messages or completion."],
    ["xAI", "This model's maximum prompt length is 131072 but the request contains 537812 tokens."],
    ["Together", "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097"],
    ["Together", "The input (7000 tokens) is longer than the model's context length (4096 tokens)."],
    ["Bedrock", "Input is too long for requested model."],
  ])("is recognised in the words of %s: %s", (_, message) => {
    const error = new ProviderError("failed", { body: { error: { message, code: 400 } } });
    expect(failureOf(error, { model: "x:y" }).code).toBe("context_overflow");
  });

  test.each([
    "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5",
    "Invalid 'messages[0].content': string too long. Expected a string with maximum length 1048576",
    "tools.0.name: String should have at most 128 characters",
  ])("is not recognised in: %s", (message) => {
    const error = new ProviderError("failed", { body: { error: { message, code: 400 } } });
    expect(failureOf(error, { model: "x:y" }).code).toBe("model_rejected");
  });
});

describe("an error to which two rules apply", () => {
  const CONTEXT = "maximum context length is 8192 tokens";
  test.each<[string, number | undefined, object, string]>([
    [
      "a rate limit that names a length",
      429,
      { message: `Limit per minute; ${CONTEXT}` },
      "model_rate_limited",
    ],
    [
      "a rate limit in a stream that names a length",
      undefined,
      { type: "rate_limit_error", message: CONTEXT },
      "model_rate_limited",
    ],
    [
      "a request above the tokens per minute",
      413,
      { code: "rate_limit_exceeded", message: "Request too large" },
      "context_overflow",
    ],
    [
      "a used up quota, sent as a rate limit",
      429,
      { code: "insufficient_quota", message: "Rate limit" },
      "model_auth",
    ],
    [
      "a used up quota that names a length",
      400,
      { code: "insufficient_quota", message: CONTEXT },
      "model_auth",
    ],
    ["a wrong key that names a length", 400, { status: "API_KEY_INVALID", message: CONTEXT }, "model_auth"],
    ["a wrong key, sent as a rate limit", 429, { message: "API key not valid." }, "model_auth"],
    ["a long conversation, sent as a failure of the server", 500, { message: CONTEXT }, "context_overflow"],
    [
      "a failure of the server that names a time limit",
      503,
      { message: "The request timed out." },
      "model_overloaded",
    ],
  ])("%s has one code", (_, status, error, code) => {
    const refusal = status === undefined ? {} : { refusal: { status, headers: new Headers() } };
    const thrown = new ProviderError("failed", { body: { error }, ...refusal });
    expect(failureOf(thrown, { model: "x:y" }).code).toBe(code);
  });
});

test.each([new Anthropic.APIConnectionTimeoutError(), new OpenAI.APIConnectionTimeoutError()])(
  "an SDK's timeout is `model_timeout`",
  (error) => {
    expect(failureOf(error, { model: "x:y" }).code).toBe("model_timeout");
  },
);

test.each(PROVIDERS.slice(0, 1))(
  "a stream without an end is closed even if it contains no events",
  async ({ model }) => {
    const { url } = await httpServer(async (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      await pipeline(Array(129).fill(Buffer.alloc(1024 * 1024, `:${" ".repeat(1022)}\n`)), response).catch(
        () => {},
      );
    });
    const error = await failing(model(fake.current, { base_url: url }));
    expect(error.message).toContain("the stream is longer than 134217728 bytes");
    expect(isTransient(error)).toBe(false);
  },
);

test("our own errors are not blamed on a provider", () => {
  expect(failureOf(new TypeError("x is not a function"), { model: "x:y" }).code).toBe("internal");
});
