import { describe, expect, test } from "vitest";
import { sendRaw } from "../../server/http/raw.ts";
import { asUser, BEHIND_GATEWAY } from "../../support/gateway.ts";
import { startServer } from "../../support/server.ts";
import { callOf, post, run, started } from "./client.ts";

describe("over HTTP, MCP", () => {
  test.each([
    ["no JSON", "{", 400, -32700, "not valid JSON"],
    ["no JSON-RPC", { id: 1, method: "ping" }, 200, -32600, "jsonrpc"],
    ["an unknown method", { jsonrpc: "2.0", id: 1, method: "resources/list" }, 200, -32601, "no method"],
    ["a call without a tool", callOf(1, {}), 200, -32602, "name"],
  ])("refuses %s", async (_, body, status, code, words) => {
    const url = await started([]);
    const refused = await post(url, body);
    const { error } = (await refused.json()) as { error: object };
    expect(refused.status).toBe(status);
    expect(error).toEqual({ code, message: expect.stringContaining(words) });
  });

  const MODERN = "2026-07-28";
  const modern = (method: string, params: object = {}, version = MODERN) => ({
    ...{ jsonrpc: "2.0", id: 1, method },
    params: { ...params, _meta: { "io.modelcontextprotocol/protocolVersion": version } },
  });
  const headers = (method: string, name?: string) => ({
    ...{ "mcp-protocol-version": MODERN, "mcp-method": method },
    ...(name === undefined ? {} : { "mcp-name": name }),
  });
  const listing = { name: "list_agents", arguments: {} };
  const ping = { jsonrpc: "2.0", id: 1, method: "ping" };

  test.each([
    ["a revision that is unknown, in the body", modern("ping", {}, "2099-01-01"), {}, 400, -32022],
    [
      "a revision that is unknown, in the header",
      ping,
      { "mcp-protocol-version": "1900-01-01" },
      400,
      -32022,
    ],
    [
      "a revision unlike the body's",
      modern("ping"),
      { ...headers("ping"), "mcp-protocol-version": "2025-11-25" },
      400,
      -32020,
    ],
    ["a revision that the body does not name", ping, headers("ping"), 400, -32020],
    ["no revision in the headers", modern("ping"), { "mcp-method": "ping" }, 400, -32020],
    ["no method in the headers", modern("ping"), { "mcp-protocol-version": MODERN }, 400, -32020],
    [
      "a method unlike the body's",
      modern("tools/call", listing),
      headers("tools/list", "list_agents"),
      400,
      -32020,
    ],
    ["no tool in the headers", modern("tools/call", listing), headers("tools/call"), 400, -32020],
    [
      "a tool unlike the body's",
      modern("tools/call", run("hi")),
      headers("tools/call", "list_agents"),
      400,
      -32020,
    ],
    ["an unknown method", modern("resources/list"), headers("resources/list"), 404, -32601],
  ] as const)(
    "refuses %s, with the status that the revision requires",
    async (_, body, sent, status, code) => {
      const refused = await post(await started([]), body, { ...sent });
      const { id, error } = (await refused.json()) as { id: number; error: { code: number } };
      expect([refused.status, id, error.code]).toEqual([status, 1, code]);
    },
  );

  test("accepts headers that match the body, plain or encoded", async () => {
    const url = await started([]);
    const encoded = `=?base64?${Buffer.from("list_agents").toString("base64")}?=`;
    for (const name of ["list_agents", encoded]) {
      const answer = await post(url, modern("tools/call", listing), headers("tools/call", name));
      expect([answer.status, await answer.json()]).toMatchObject([
        200,
        { result: { resultType: "complete" } },
      ]);
    }
  });

  test("answers a batch as its revision requires: all responses together, none for notifications", async () => {
    const url = await started([{ say: "Hello." }]);
    const note = { jsonrpc: "2.0", method: "notifications/initialized" };
    const odd = { jsonrpc: "2.0", id: "odd", method: "resources/list" };
    const batch = [ping, note, callOf(2, run("hi")), callOf(3, listing), odd, callOf(4, { name: "none" })];
    const answers = (await (await post(url, batch)).json()) as {
      id: unknown;
      result?: object;
      error?: object;
    }[];
    expect(answers.map(({ id, result }) => [id, result !== undefined])).toEqual([
      ...[
        [1, true],
        [2, true],
        [3, true],
        ["odd", false],
        [4, false],
      ],
    ]);
    expect(answers[1]?.result).toMatchObject({ structuredContent: { status: "success", text: "Hello." } });
    expect((await post(url, [note])).status).toBe(202);
    for (const [body, sent] of [
      [[], {}],
      [[ping], { "mcp-protocol-version": "2025-11-25" }],
      [Array.from({ length: 51 }, () => ping), {}],
    ] as const)
      expect((await post(url, body, { ...sent })).status).toBe(400);
  });

  test("refuses pages of other sites and other names of this machine, and has no stream between calls", async () => {
    const url = await started([]);
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

  test("refuses requests outside of the credentials' scopes with 403", async () => {
    const url = await started([{ say: "ok" }], BEHIND_GATEWAY);
    const reader = asUser("ada", "read");
    expect((await post(url, callOf(1, { name: "list_agents" }), reader)).status).toBe(200);
    const thread_id = "none";
    for (const refused of [
      callOf(1, run("hi")),
      callOf(1, { name: "answer", arguments: { thread_id, decision: "approve" } }),
      callOf(1, { name: "cancel_run", arguments: { thread_id } }),
      { jsonrpc: "2.0", id: "ask:none:approval_1", result: { action: "accept" } },
      { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } },
    ])
      expect((await post(url, refused, reader)).status).toBe(403);
    expect((await post(url, callOf(1, run("hi")))).status).toBe(401);
  });

  test("does not give another user the stream of a call", async () => {
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
