import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { Message } from "../../../src/agent/core/message.ts";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { createClient } from "../../../src/client/client.ts";
import { gate, gated, WITH_GATE } from "../../support/gate.ts";
import { startServer } from "../../support/server.ts";

const LIMIT = 20_000;
const config = { limits: { thread_bytes: LIMIT } };

const long = defineTool({
  name: "long",
  description: "Returns a long text.",
  parameters: z.object({}),
  execute: () => "x".repeat(12_000),
});

async function api(options: Parameters<typeof startServer>[0]) {
  const { url } = await startServer({ ...options, config: { ...config, ...options?.config } });
  const send = async (path: string, body: object) => {
    const reply = await fetch(url + path, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify(body),
    });
    // The answers of these routes are objects.
    return { status: reply.status, body: (await reply.json()) as Record<string, unknown> };
  };
  const messages = async (thread: string) => {
    const reply = await fetch(`${url}/threads/${thread}/messages`);
    return reply.ok ? ((await reply.json()) as { items: Message[] }).items : undefined;
  };
  const used = async () => {
    const reply = (await (await fetch(`${url}/usage`)).json()) as {
      limits: { limit: string; used: number }[];
    };
    return reply.limits.find(({ limit }) => limit === "stored_bytes")?.used;
  };
  return { send, messages, used, url };
}

describe("a thread that would exceed its limit of bytes", () => {
  test("is not created with the history of an OpenAI client", async () => {
    const { send, url } = await api({ script: [{ say: "ok" }] });
    const items = [{ role: "user", content: "x".repeat(LIMIT) }];
    expect((await send("/v1/conversations", { items })).status).toBe(429);
    const messages = [...items, { role: "assistant", content: "y" }, { role: "user", content: "go" }];
    expect((await send("/v1/chat/completions", { model: "assistant", messages })).status).toBe(429);
    expect(await (await fetch(`${url}/threads`)).json()).toEqual({ items: [] });
  });

  test("refuses the run with the limit and its value, and nothing is written", async () => {
    const { send, messages } = await api({ script: [{ say: "ok" }] });
    const refused = await send("/threads/new/runs", { input: "x".repeat(LIMIT) });
    expect(refused.status).toBe(429);
    expect(refused.body).toMatchObject({
      ...{ code: "limit_exceeded", details: { limit: "thread_bytes", most: LIMIT } },
    });
    expect(await messages("new")).toBeUndefined();

    expect((await send("/threads/t/runs", { input: "x".repeat(12_000) })).status).toBe(200);
    expect((await send("/threads/t/runs", { input: "y".repeat(12_000) })).status).toBe(429);
    const [first] = (await messages("t")) ?? [];
    expect(await messages("t")).toHaveLength(2);
    const replaced = await send("/threads/t/runs", { input: "y".repeat(12_000), replaces: first?.id });
    expect(replaced.status).toBe(200);
    expect((await messages("t"))?.[0]?.content).toBe("y".repeat(12_000));
  });

  test("refuses a message to a run that works, and the run continues without it", async () => {
    const { tool, entered, open } = gate();
    const { send, messages, url } = await api({ script: gated, tools: [tool], agents: WITH_GATE });
    const running = send("/threads/t/runs", { input: "x".repeat(12_000) });
    await entered;
    const steered = await steer("y".repeat(12_000));
    expect(steered).toMatchObject({ status: 429, body: { details: { limit: "thread_bytes" } } });
    expect((await steer("z")).status).toBe(202);
    open();
    expect((await running).body).toMatchObject({ status: "success" });
    const said = (await messages("t"))?.filter(({ role }) => role === "user");
    expect(said?.map(({ content }) => content)).toEqual(["x".repeat(12_000), "z"]);

    async function steer(input: string) {
      const { items } = await createClient({ baseUrl: url }).runs.of("t");
      return send(`/threads/t/runs/${items[0]?.id}/messages`, { input });
    }
  });

  test("ends a run whose agent fills it, with every call answered, and remains readable", async () => {
    const call = { tool: "long", args: {} };
    const { send, messages } = await api({
      tools: [long],
      agents: "agents:\n  assistant:\n    model: scripted:test\n    tools: [long]\n",
      script: [{ call: [call] }, { call: [call] }, { say: "never" }],
    });
    const { body } = await send("/threads/t/runs", { input: "go" });
    expect(body).toMatchObject({ status: "error", error: { code: "limit_exceeded" } });
    const all = (await messages("t")) ?? [];
    expect(all.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "tool"]);
    expect(all.at(-1)).toMatchObject({ error: expect.stringContaining("thread_bytes") });
    expect((await send("/threads/t/runs", { input: "x".repeat(9_000) })).status).toBe(429);
  });
});

describe("the quota of stored bytes", () => {
  const quotas = (stored_bytes: number) => ({ quotas: { user: { stored_bytes } } });

  test("counts the contents of the user's threads until they are cleared or deleted", async () => {
    const { send, url, used, messages } = await api({ script: [{ say: "ok" }], config: quotas(1_000_000) });
    const sizes = async (thread: string) =>
      ((await messages(thread)) ?? []).reduce(
        (sum, each) => sum + Buffer.byteLength(JSON.stringify(each)),
        0,
      );
    await send("/threads/a/runs", { input: "é".repeat(1_000) });
    await send("/threads/b/runs", { input: "hi" });
    await send("/threads/a/fork", { id: "c" });
    const [first] = (await messages("a")) ?? [];
    await send("/threads/a/fork", { id: "d", message_id: first?.id });
    const all = await Promise.all(["a", "b", "c", "d"].map(sizes));
    expect(await used()).toBe(all.reduce((sum, bytes) => sum + bytes, 0));
    await send("/threads/a/runs", { input: "short", replaces: first?.id });
    // What was replaced is kept as a branch.
    expect(await used()).toBe((await sizes("a")) + all.reduce((sum, bytes) => sum + bytes, 0));
    await fetch(`${url}/threads/a`, { method: "DELETE" });
    await fetch(`${url}/threads/c/messages`, { method: "DELETE" });
    expect(await used()).toBe((all[1] ?? 0) + (all[3] ?? 0));
  });

  test("counts the tenant's HTTP tools, refuses one that would exceed it, and is free again without it", async () => {
    const { send, url } = await api({
      script: [{ say: "ok" }],
      config: { quotas: { tenant: { stored_bytes: 3_000 } } },
    });
    const register = (name: string) =>
      send("/tools", {
        name,
        description: "x".repeat(2_000),
        parameters: { type: "object" },
        callback_url: "https://tools.example.com/",
      });
    expect((await register("one")).status).toBe(201);
    expect(await register("two")).toMatchObject({
      status: 429,
      body: { code: "limit_exceeded", details: { limit: "stored_bytes", of: "tenant", most: 3_000 } },
    });
    expect((await send("/threads/a/runs", { input: "x".repeat(1_000) })).status).toBe(429);
    const { items } = (await (await fetch(`${url}/tools`)).json()) as { items: { name: string }[] };
    expect(items.map(({ name }) => name)).toEqual(["one"]);
    expect((await fetch(`${url}/tools/one`, { method: "DELETE" })).status).toBe(204);
    expect((await register("two")).status).toBe(201);
  });

  test("refuses runs and forks that would exceed it, and counts nothing for them", async () => {
    const { send, used, messages } = await api({ script: [{ say: "ok" }], config: quotas(10_000) });
    expect((await send("/threads/a/runs", { input: "x".repeat(6_000) })).status).toBe(200);
    const before = await used();
    const refused = await send("/threads/b/runs", { input: "x".repeat(6_000) });
    expect(refused).toMatchObject({
      status: 429,
      body: { code: "limit_exceeded", details: { limit: "stored_bytes", of: "user", most: 10_000 } },
    });
    expect(await messages("b")).toBeUndefined();
    expect((await send("/threads/a/fork", { id: "c" })).status).toBe(429);
    expect(await messages("c")).toBeUndefined();
    expect(await used()).toBe(before);
    expect((await send("/threads/b/runs", { input: "x".repeat(1_000) })).status).toBe(200);
  });

  test("counts the messages with which OpenAI clients start a conversation, and refuses too many", async () => {
    const { send, used, messages } = await api({ script: [{ say: "ok" }], config: quotas(10_000) });
    const conversation = (length: number) =>
      send("/v1/conversations", { items: [{ role: "user", content: "x".repeat(length) }] });
    const { body } = await conversation(6_000);
    const held = ((await messages(String(body.id))) ?? []).map((each) => JSON.stringify(each).length);
    expect(await used()).toBe(held[0]);
    expect((await conversation(6_000)).status).toBe(429);
    expect(await used()).toBe(held[0]);
    const history = [
      { role: "user", content: "y".repeat(6_000) },
      { role: "assistant", content: "z" },
      { role: "user", content: "go" },
    ];
    const refused = await send("/v1/responses", { model: "assistant", input: history });
    expect(refused.status).toBe(429);
    expect(await used()).toBe(held[0]);
  });

  test("ends a run whose agent exceeds it, and counts the run's output", async () => {
    const { send, used, messages } = await api({
      tools: [long],
      agents: "agents:\n  assistant:\n    model: scripted:test\n    tools: [long]\n",
      config: { ...quotas(100_000), limits: {} },
      script: [{ say: "x".repeat(30_000), call: [{ tool: "long", args: {} }] }, { say: "x".repeat(150_000) }],
    });
    const { body } = await send("/threads/t/runs", { input: "go" });
    expect(body).toMatchObject({ status: "error", error: { code: "limit_exceeded" } });
    const written = ((await messages("t")) ?? []).map((each) => JSON.stringify(each).length);
    expect(written).toHaveLength(3);
    expect(await used()).toBe(written.reduce((sum, bytes) => sum + bytes, 0));
  });
});
