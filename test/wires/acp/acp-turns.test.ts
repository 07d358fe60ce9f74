// Turns that an editor cancels, that wait, fail or are refused, over the Agent Client Protocol.

import { methods } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import type { Script } from "../../../src/agent/models/scripted.ts";
import { accept, callbackTool, send } from "../../support/callback-tool.ts";
import { freePort } from "../../support/free-port.ts";
import { statusesOf } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";
import { AGENTS, calls, editor, opened, saidIn } from "./editor.ts";

describe("an editor", () => {
  test("cancels a turn: the run ends, the prompt is answered, and the session continues", async () => {
    const { url, agent, say, updates, sessionId } = await opened((_, call) =>
      call === 0 ? { say: "word ".repeat(1000), delay_ms: 20 } : { say: "Next." },
    );
    const prompt = say(sessionId, "go");
    await expect.poll(() => saidIn(updates)).toContain("word word");
    await agent.notify(methods.agent.session.cancel, { sessionId });
    expect(await prompt).toEqual({ stopReason: "cancelled" });
    expect(await statusesOf(url, sessionId)).toEqual(["cancelled"]);
    expect(await say(sessionId, "again")).toEqual({ stopReason: "end_turn" });
    expect(saidIn(updates)).toMatch(/Next\.$/);
  });

  test("cancels a prompt whose run has not started yet", async () => {
    const { url, agent, say, sessionId } = await opened([{ say: "word ".repeat(1000), delay_ms: 20 }]);
    const prompt = say(sessionId, "go");
    await agent.notify(methods.agent.session.cancel, { sessionId });
    expect(await prompt).toEqual({ stopReason: "cancelled" });
    expect(await statusesOf(url, sessionId)).toEqual(["cancelled"]);
  });

  test("cancels a prompt that waits for a slot on the server", async () => {
    const script: Script = ({ messages }) =>
      messages.some(({ content }) => content === "long")
        ? { say: "word ".repeat(1000), delay_ms: 20 }
        : undefined;
    const { url } = await startServer({ script, agents: AGENTS, config: { limits: { runs: 1 } } });
    const { agent, open, say, updates } = await editor(url);
    const [one, other] = [await open(), await open()];
    const long = say(one, "long");
    await expect.poll(() => saidIn(updates)).toContain("word");
    const waiting = say(other, "short");
    await expect.poll(() => statusesOf(url, other).catch(() => [])).toEqual(["pending"]);
    await agent.notify(methods.agent.session.cancel, { sessionId: other });
    expect(await waiting).toEqual({ stopReason: "cancelled" });
    expect(await statusesOf(url, other)).toEqual(["cancelled"]);
    await agent.notify(methods.agent.session.cancel, { sessionId: one });
    await long;
  });

  test("cancels a prompt although the server has stopped", async () => {
    const script = [{ say: "word ".repeat(1000), delay_ms: 20 }];
    const { url, app } = await startServer({ script, agents: AGENTS, config: { store: "sqlite" } });
    const { agent, open, say, updates } = await editor(url);
    const sessionId = await open();
    const prompt = say(sessionId, "go");
    await expect.poll(() => saidIn(updates)).toContain("word");
    await app.close();
    await agent.notify(methods.agent.session.cancel, { sessionId });
    expect(await prompt).toEqual({ stopReason: "cancelled" });
  });

  test("shows the provider's error, and learns when a limit ends the turn", async () => {
    const fail = { code: "model_rejected", message: "The provider said no." };
    const { say, sessionId } = await opened([
      { say: "Half", fail },
      { say: "cut", stop_reason: "max_tokens" },
    ]);
    await expect(say(sessionId, "go")).rejects.toThrow("The provider said no.");
    expect(await say(sessionId, "again")).toEqual({ stopReason: "max_tokens" });
  });

  test.each([
    ["hooks: { budgets: { tokens: 1 } }", "max_tokens"],
    ["max_iterations: 1", "max_turn_requests"],
  ])("learns that a turn ended at %s", async (limit, stopReason) => {
    const agents = `agents: { assistant: { model: "scripted:test", ${limit} } }`;
    const { url } = await startServer({ script: () => ({ call: [{ tool: "ls" }] }), agents });
    const { open, say } = await editor(url);
    expect(await say(await open(), "go")).toEqual({ stopReason });
  });

  test("continues a turn whose tool delivers its result later", async () => {
    const tool = await callbackTool(accept);
    const port = await freePort();
    const config = {
      ...{ listen: { port }, public_url: `http://127.0.0.1:${port}`, http_tools: { allow: tool.allow } },
    };
    const { url } = await startServer({
      script: [{ call: [{ tool: "freight" }] }, { say: "It is 42." }],
      agents: `agents: { assistant: { model: "scripted:test", tools: [freight] } }`,
      config,
    });
    expect((await tool.register(url, "freight")).status).toBe(201);
    const its = await editor(url);
    const sessionId = await its.open();
    const prompt = its.say(sessionId, "go");
    await expect.poll(() => statusesOf(url, sessionId)).toEqual(["interrupted"]);
    await send(tool.calls[0]?.result_url ?? "", { result: 42 });
    expect(await prompt).toEqual({ stopReason: "end_turn" });
    expect(saidIn(its.updates)).toBe("It is 42.");
    expect(calls(its.updates)).toMatchObject([{ title: "freight", status: "completed" }]);
  });

  test("gets a readable refusal: audio, an empty prompt, another simultaneous prompt, an unknown session", async () => {
    const { say, agent, updates, sessionId } = await opened([{ say: "word ".repeat(1000), delay_ms: 20 }]);
    await expect(say(sessionId, { type: "audio", mimeType: "audio/wav", data: "AA==" })).rejects.toThrow(
      "Audio",
    );
    await expect(say(sessionId, "")).rejects.toThrow("The prompt is empty");
    const here = { cwd: "/", mcpServers: [] };
    const unknown = { code: -32002, data: { sessionId: "unknown" } };
    await expect(say("unknown", "hi")).rejects.toMatchObject(unknown);
    await expect(
      agent.request(methods.agent.session.load, { sessionId: "unknown", ...here }),
    ).rejects.toMatchObject(unknown);
    const first = say(sessionId, "go");
    await expect.poll(() => saidIn(updates)).toContain("word");
    await expect(say(sessionId, "and this")).rejects.toThrow("in progress");
    await agent.notify(methods.agent.session.cancel, { sessionId });
    await first;
  });

  test("learns why it cannot begin: no server, no key, no such agent", async () => {
    const { url } = await startServer({ agents: AGENTS, config: { auth: { scheme: "api_key" } } });
    const failed = async (its: Awaited<ReturnType<typeof editor>>) =>
      its.open().catch((error: unknown) => error);
    expect(await failed(await editor(url))).toMatchObject({
      code: -32000,
      message: expect.stringContaining("Set SKEIN_API_KEY"),
    });
    expect(await failed(await editor("http://127.0.0.1:1"))).toMatchObject({
      message: expect.stringContaining("http://127.0.0.1:1"),
    });
    const open = await startServer({ agents: AGENTS });
    expect(await failed(await editor(open.url, { args: ["--agent", "unknown"] }))).toMatchObject({
      message: expect.stringContaining("unknown"),
    });
  });
});
