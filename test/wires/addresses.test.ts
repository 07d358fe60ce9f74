// Addresses as people paste them and clients join them.

import { expect, test } from "vitest";
import { WireName } from "../../src/server/config/wire-names.ts";
import { postJson } from "../support/native.ts";
import { startServer } from "../support/server.ts";
import { AGENTS } from "./agents.ts";

const started = async (config: object = {}) =>
  (await startServer({ agents: AGENTS, config: { wires: WireName.options, ...config } })).url;

test.each([
  "/v1/models/",
  "/v1//models",
  "//v1/models",
  "/langgraph/ok/",
  "/ag-ui//info/?a=//b/",
  "/.well-known//agent-card.json",
])("GET %s is answered, because extra slashes do not matter for wires", async (path) => {
  expect((await fetch((await started()) + path)).status).toBe(200);
});

test.each([
  ["/v1/chat/completions/", { model: "assistant", messages: [{ role: "user", content: "hi" }] }],
  ["/v1//responses", { model: "assistant", input: "hi" }],
  ["/mcp/", { jsonrpc: "2.0", id: 1, method: "ping" }],
])("POST %s is answered", async (path, body) => {
  expect((await postJson((await started()) + path, body)).status).toBe(200);
});

test("a native path is exact, including its slashes", async () => {
  expect((await fetch(`${await started()}//threads`)).status).toBe(404);
});

test.each(["/v1/models", "/langgraph/info", "/threads", "/agents", "/health", "/", "/openapi.yaml"])(
  "HEAD %s has the headers of GET and no body",
  async (path) => {
    const url = (await started()) + path;
    const [head, get] = [await fetch(url, { method: "HEAD" }), await fetch(url)];
    expect([head.status, head.headers.get("content-type")]).toEqual([200, get.headers.get("content-type")]);
    expect(await head.text()).toBe("");
  },
);

test("HEAD of an event stream is refused because it would never end", async () => {
  const url = await started();
  for (const path of ["/events", "/threads/t/events"])
    expect((await fetch(url + path, { method: "HEAD" })).status).toBe(405);
});

test.each([
  "/.well-known/oauth-protected-resource",
  "/.well-known/oauth-protected-resource/mcp",
  "/.well-known/oauth-authorization-server",
  "/.well-known/openid-configuration",
  "/mcp/.well-known/openid-configuration",
])("a client that looks for an OAuth server at %s finds none, without a key", async (path) => {
  const url = await started({ auth: { scheme: "api_key" } });
  expect((await fetch(url + path)).status).toBe(404);
  expect((await fetch(`${url}/mcp/other`)).status).toBe(401);
});

test("a client that registers without a key learns that this server has no OAuth", async () => {
  const url = await started({ auth: { scheme: "api_key" } });
  const answer = await postJson(`${url}/register`, { redirect_uris: ["http://localhost/"] });
  expect(answer.status).toBe(404);
  expect(await answer.json()).toMatchObject({ detail: expect.stringContaining("no OAuth server") });
});
