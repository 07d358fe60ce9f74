import { describe, expect, test } from "vitest";
import { asUser, BEHIND_GATEWAY } from "../../../support/gateway.ts";
import { startServer } from "../../../support/server.ts";
import { sendRaw } from "../../raw.ts";
import { callOf, post, run, started } from "./client.ts";

describe("over HTTP, MCP", () => {
  test.each([
    ["a batch", [callOf(1, {})], 400, -32600, "must be"],
    ["no JSON", "{", 400, -32700, "not valid JSON"],
    ["no JSON-RPC", { id: 1, method: "ping" }, 200, -32600, "jsonrpc"],
    ["an unknown method", { jsonrpc: "2.0", id: 1, method: "resources/list" }, 200, -32601, "no method"],
    ["a call without a tool", callOf(1, {}), 200, -32602, "name"],
    [
      "an unknown revision",
      callOf(1, { _meta: { "io.modelcontextprotocol/protocolVersion": "2099-01-01" } }),
      ...([200, -32022, "2026-07-28"] as const),
    ],
  ])("refuses %s", async (_, body, status, code, words) => {
    const url = await started([]);
    const refused = await post(url, body);
    const { error } = (await refused.json()) as { error: { code: number; message: string } };
    expect([refused.status, error.code]).toEqual([status, code]);
    expect(error.message).toContain(words);
  });

  test("refuses pages of other sites, other names of this machine, and has no stream between calls", async () => {
    const url = await started([]);
    const ping = { jsonrpc: "2.0", id: 1, method: "ping" };
    expect((await post(url, ping)).status).toBe(200);
    expect((await post(url, ping, { origin: "https://evil.example.com" })).status).toBe(403);
    const host = "evil.example.com";
    const rebound = await sendRaw(
      Number(new URL(url).port),
      Buffer.from(`POST /mcp HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`),
    );
    expect(rebound.status).toBe(403);
    expect((await fetch(`${url}/mcp`)).status).toBe(405);
    expect((await fetch(`${url}/mcp`, { method: "DELETE" })).status).toBe(204);
  });

  test("refuses what the credentials are not for, with 403", async () => {
    const url = await started([{ say: "ok" }], BEHIND_GATEWAY);
    const reader = asUser("ada", "read");
    expect((await post(url, callOf(1, { name: "list_agents" }), reader)).status).toBe(200);
    expect((await post(url, callOf(1, run("hi")), reader)).status).toBe(403);
    expect((await post(url, callOf(1, run("hi")))).status).toBe(401);
  });

  test("gives no other user the stream of a call", async () => {
    const url = await started([{ say: "Secret." }], BEHIND_GATEWAY);
    const session = { "mcp-session-id": `plain-${"s".repeat(22)}`, "mcp-protocol-version": "2025-11-25" };
    const text = await (await post(url, callOf(1, run("hi")), { ...asUser("ada"), ...session })).text();
    const id = /^id: (.*)$/m.exec(text)?.[1] ?? "";
    const comeBack = (user: string, cursor: string) =>
      fetch(`${url}/mcp`, { headers: { ...asUser(user), ...session, "last-event-id": cursor } });
    expect(await (await comeBack("ada", id)).text()).toContain("Secret.");
    expect((await comeBack("bob", id)).status).toBe(404);
    expect((await comeBack("bob", "odd")).status).toBe(400);
  });

  test("is off unless the operator turns it on", async () => {
    const { url } = await startServer();
    expect((await post(url, { jsonrpc: "2.0", id: 1, method: "ping" })).status).toBe(404);
  });
});
