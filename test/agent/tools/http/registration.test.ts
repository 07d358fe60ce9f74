import { describe, expect, test } from "vitest";
import {
  changedHttpTool,
  HttpTool,
  HttpToolRegistration,
  httpToolInfo,
  newHttpTool,
  RegisteredHttpTool,
} from "../../../../src/agent/tools/http/registration.ts";

const WEATHER = {
  ...{ name: "weather", description: "Says the weather.", parameters: { type: "object" } },
  callback_url: "https://tools.example.com/weather",
};
const made = (more: object = {}, isTaken = (_: string) => false) =>
  newHttpTool(HttpToolRegistration.parse({ ...WEATHER, ...more }), {
    isTaken,
    isRefused: async ({ hostname }) => hostname === "10.0.0.5",
  });

test("a registration needs four fields, and has sensible defaults for the others", () => {
  expect(HttpToolRegistration.parse(WEATHER)).toEqual({
    ...WEATHER,
    ...{ headers: {}, timeout_ms: 30_000, idempotent: false, annotations: {}, agents: ["*"] },
  });
});

test("a change keeps the secrets and the headers that it does not name", async () => {
  const previous = { secret: "whsec_b2xk", until: "2099-01-01T00:00:00.000Z" };
  const before = { ...(await made({ headers: { "x-key": "1", "x-old": "2" } })), previous };
  const checks = { isTaken: () => false, isRefused: async () => false };
  const headers = { "x-new": "3", "x-old": null };
  const after = await changedHttpTool(before, { description: "Says it.", headers }, checks);
  expect(after).toEqual({ ...before, description: "Says it.", headers: { "x-key": "1", "x-new": "3" } });
});

test("headers are limited together: 20 after a change, and 16,384 characters", async () => {
  const before = await made({
    headers: Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`h${n}`, "x"])),
  });
  const checks = { isTaken: () => false, isRefused: async () => false };
  const change = (headers: Record<string, string | null>) => changedHttpTool(before, { headers }, checks);
  await expect(change({ one: "x" })).rejects.toThrow("headers: at most 20 are allowed");
  await expect(change({ one: "x", h0: null })).resolves.toMatchObject({ headers: { one: "x" } });
  const [a, b, c, d] = Array.from({ length: 4 }, () => "x".repeat(4096));
  await expect(made({ headers: { a, b, c, d } })).resolves.toHaveProperty("secret");
  await expect(made({ headers: { a, b, c, d, e: "x" } })).rejects.toThrow("16385 characters in total");
});

describe("a registration is refused", () => {
  test.each<[what: string, more: object]>([
    ["without a name", { name: "" }],
    ["with a name that no model takes", { name: "say weather" }],
    ["with a name that leads elsewhere", { name: "../etc" }],
    ["with an MCP server's name", { name: "mcp__github__search" }],
    ["without a description", { description: "" }],
    ["with parameters that are no object", { parameters: [] }],
    ["with a file's URL", { callback_url: "file:///etc/passwd" }],
    ["with no URL", { callback_url: "tools.example.com" }],
    ["with a password in the URL", { callback_url: "https://a:b@tools.example.com" }],
    ["with a user in the URL", { callback_url: "https://a@tools.example.com" }],
    ["with a time beyond ten minutes", { timeout_ms: 600_001 }],
    ["without time", { timeout_ms: 0 }],
    ["with an unknown key", { callback: "x" }],
    ["with an unknown annotation", { annotations: { readOnly: true } }],
    ["for no agents", { agents: [] }],
    ["for a broken pattern", { agents: ["[a"] }],
    ["with another host", { headers: { Host: "internal" } }],
    ["with a signature of its own", { headers: { "Webhook-Signature": "v1,x" } }],
    ["with a key of its own", { headers: { "idempotency-KEY": "x" } }],
    ["with a length", { headers: { "content-length": "5" } }],
    ["with an encoding", { headers: { "Transfer-Encoding": "chunked" } }],
    ["with a connection's header", { headers: { connection: "x" } }],
    ["with a proxy's header", { headers: { "Proxy-Authorization": "x" } }],
    ["with two headers in one", { headers: { a: "b\r\nc: d" } }],
    ["with a header of two lines", { headers: { a: "b\nc" } }],
    ["with a header that is not ASCII", { headers: { a: "ü" } }],
    ["with a header name that is none", { headers: { "a b": "c" } }],
    ["with a header without a name", { headers: { "": "c" } }],
    [
      "with too many headers",
      { headers: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`h${n}`, "x"])) },
    ],
  ])("%s", (_, more) => {
    expect(HttpToolRegistration.safeParse({ ...WEATHER, ...more }).success).toBe(false);
  });

  test.each([
    ["no object", { type: "array" }, /"type": "object"/],
    [
      "no valid schema",
      { type: "object", properties: { a: { type: "text" } } },
      /^parameters: the schema is not valid JSON Schema.*properties\.a\.type/,
    ],
    [
      "what models cannot be sent",
      { type: "object", properties: { "filter[id]": { type: "string" } } },
      /^parameters: they have a property name .*"filter\[id\]"; use 1 to 64 characters/,
    ],
  ])("for parameters that are %s, with the reason", async (_, parameters, message) => {
    await expect(made({ parameters })).rejects.toMatchObject({ code: "invalid_request", message });
  });

  test("for the name of one of the server's own tools", async () => {
    await expect(made({ name: "read_file" }, (name) => name === "read_file")).rejects.toMatchObject({
      code: "already_exists",
    });
  });
});

test("every tool has its own secret, which is shown only in the response to the registration", async () => {
  const [one, two] = [await made(), await made()];
  expect(HttpTool.parse(one)).toEqual(one);
  expect(one.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(two.secret).not.toBe(one.secret);
  expect(JSON.stringify(httpToolInfo(one))).not.toContain("whsec_");
  expect(RegisteredHttpTool.parse({ ...httpToolInfo(one), secret: one.secret })).toHaveProperty("secret");
});

test("a tool is shown without the values of its headers and its URL's query", async () => {
  const tool = await made({
    callback_url: "https://tools.example.com/weather?key=s3cret",
    headers: { "X-Key": "s3cret", authorization: "Bearer s3cret" },
  });
  const info = httpToolInfo(tool);
  expect(info).toMatchObject({
    callback_url: "https://tools.example.com/weather",
    header_names: ["X-Key", "authorization"],
  });
  expect(JSON.stringify(info)).not.toContain("s3cret");
});
