import { describe, expect, test } from "vitest";
import { asUser, BEHIND_GATEWAY } from "../../support/gateway.ts";
import { postJson } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";
import { AGENTS } from "../agents.ts";
import { started } from "./client.ts";

describe("another agent", () => {
  test("finds an agent by its card, which reveals nothing of its prompt and tools", async () => {
    const { url } = await started([]);
    const card = await (await fetch(`${url}/.well-known/agent-card.json`)).json();
    expect(card).toEqual(await (await fetch(`${url}/a2a/assistant/.well-known/agent-card.json`)).json());
    expect(card).toMatchObject({
      name: "assistant",
      description: "Helps.",
      supportedInterfaces: [
        { url: `${url}/a2a/assistant`, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
        { url: `${url}/a2a/assistant`, protocolBinding: "JSONRPC", protocolVersion: "0.3" },
      ],
      capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false },
    });
    expect(JSON.stringify(card)).not.toContain("execute");
    expect((await fetch(`${url}/a2a/unknown/.well-known/agent-card.json`)).status).toBe(404);
  });

  test("reads a card without credentials, but nothing else", async () => {
    const { url } = await startServer({ agents: AGENTS, config: { wires: ["a2a"], ...BEHIND_GATEWAY } });
    const card = await (await fetch(`${url}/.well-known/agent-card.json`)).json();
    expect(card).toMatchObject({ securityRequirements: [{ schemes: { key: { list: [] } } }] });
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ListTasks" });
    const headers = { "content-type": "application/json", "a2a-version": "1.0" };
    expect((await fetch(`${url}/a2a/assistant`, { method: "POST", headers, body })).status).toBe(401);
  });
});

describe("over HTTP, A2A", () => {
  const call = (method: string, params: object = {}) => ({ jsonrpc: "2.0", id: 1, method, params });
  const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "hi" }] };

  test.each([
    ["an unknown method", call("tasks/list"), -32601, "no method"],
    ["a message without parts", call("SendMessage", { message: { messageId: "m" } }), -32602, "parts"],
    ["an unknown task", call("GetTask", { id: "none" }), -32001, "no task"],
    ["push notifications", call("CreateTaskPushNotificationConfig"), -32003, "not supported"],
    [
      "a message with push notifications",
      call("SendMessage", { message, configuration: { taskPushNotificationConfig: { url: "https://a" } } }),
      ...([-32003, "not supported"] as const),
    ],
    [
      "other kinds of answers",
      call("SendMessage", { message, configuration: { acceptedOutputModes: ["image/png"] } }),
      ...([-32005, "text/plain"] as const),
    ],
    ["the extended card", call("GetExtendedAgentCard"), -32004, "no extended card"],
  ])("refuses %s with its code and status 200", async (_, body, code, words) => {
    const { url } = await started([]);
    const refused = await postJson(`${url}/a2a/assistant`, body, { "a2a-version": "1.0" });
    const { error } = (await refused.json()) as { error: { code: number; message: string } };
    expect([refused.status, error.code]).toEqual([200, code]);
    expect(error.message).toContain(words);
  });

  test("refuses methods of 1.0 without its version, unknown agents and pages of other sites", async () => {
    const { url } = await started([]);
    const old = await postJson(`${url}/a2a/assistant`, call("SendMessage"));
    expect(await old.json()).toMatchObject({
      error: { code: -32009, data: [{ reason: "VERSION_NOT_SUPPORTED", domain: "a2a-protocol.org" }] },
    });
    const current = { "a2a-version": "1.0" };
    const unknown = await postJson(`${url}/a2a/unknown`, call("ListTasks"), current);
    expect(await unknown.json()).toMatchObject({
      error: { message: expect.stringContaining("no agent `unknown`") },
    });
    const evil = { ...current, origin: "https://evil.example.com" };
    expect((await postJson(`${url}/a2a/assistant`, call("ListTasks"), evil)).status).toBe(403);
  });

  test("allows only what the credentials allow", async () => {
    const { url } = await startServer({ agents: AGENTS, config: { wires: ["a2a"], ...BEHIND_GATEWAY } });
    const reader = { ...asUser("ada", "read"), "a2a-version": "1.0" };
    expect((await postJson(`${url}/a2a/assistant`, call("ListTasks"), reader)).status).toBe(200);
    for (const refused of [call("SendMessage", { message }), call("CancelTask", { id: "none" })])
      expect((await postJson(`${url}/a2a/assistant`, refused, reader)).status).toBe(403);
  });

  test("is off unless the operator turns it on", async () => {
    const { url } = await startServer();
    expect((await fetch(`${url}/.well-known/agent-card.json`)).status).toBe(404);
  });
});
