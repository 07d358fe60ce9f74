// What is said and shown on a page with `useChat`, against the whole server.

import { describe, expect, test } from "vitest";
import { gate, gated, WITH_GATE } from "../../support/gate.ts";
import { httpServer } from "../../support/hostile.ts";
import { postJson, runsOf } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";
import { HELPED } from "../../support/team.ts";
import { essence, history, page, started, textOf, toolsOf } from "./page.ts";

describe("a page with useChat", () => {
  test("shows the agent's thoughts and text, and the same after a reload", async () => {
    const { url, chat } = await started([{ think: "Let me see.", say: "You said {{user}}." }]);
    await chat.sendMessage({ text: "hello" });
    expect(chat.status).toBe("ready");
    expect(textOf(chat.messages[1])).toBe("You said hello.");
    expect(chat.messages[1]?.metadata).toMatchObject({
      agent: "assistant",
      thread_id: "chat1",
      usage: { output_tokens: expect.any(Number) },
    });
    expect(essence(await history(url))).toEqual(essence(chat.messages));
  });

  test("shows tools of the server with their results, and is not asked to execute them", async () => {
    const { url, chat, calls } = await started([
      {
        call: [
          { tool: "write_todos", args: { todos: [{ id: "1", title: "Write it", status: "done" }] } },
          { tool: "write_file", args: { path: "a.txt", content: "x" } },
        ],
      },
      { say: "Done." },
    ]);
    await chat.sendMessage({ text: "work" });
    expect(calls).toEqual([]);
    expect(toolsOf(chat.lastMessage).map(({ toolName, state }) => [toolName, state])).toEqual([
      ["write_todos", "output-available"],
      ["write_file", "output-available"],
    ]);
    const data = (type: string) => chat.lastMessage?.parts.find((part) => part.type === type);
    const [path] = Object.keys((data("data-files") as { data: object }).data);
    expect(data("data-files")).toMatchObject({ data: { [path ?? ""]: { bytes: 1, op: "write" } } });
    expect(path).toMatch(/a\.txt$/);
    expect(data("data-todos")).toMatchObject({
      data: [{ id: "1", content: "Write it", status: "completed" }],
    });
    expect(textOf(chat.lastMessage)).toBe("Done.");
    expect(textOf((await history(url)).at(-1))).toBe("Done.");
  });

  test("shows the web pages that an agent has read, and finds them after a reload", async () => {
    const web = await httpServer((_, response) =>
      response.writeHead(200, { "content-type": "text/html" }).end("<title>Wool</title><p>Of sheep."),
    );
    const { url } = await startServer({
      script: [{ call: [{ tool: "web_fetch", args: { url: `${web.url}/wool` } }] }, { say: "Of sheep." }],
      agents: "agents: { assistant: { model: 'scripted:test', tools: [web_fetch] } }",
      config: { web: { private: `127.0.0.1:${web.port}` } },
    });
    const { chat } = page(url);
    await chat.sendMessage({ text: "What is wool?" });
    const sourcesOf = (message: typeof chat.lastMessage) =>
      message?.parts.filter(({ type }) => type === "source-url");
    expect(sourcesOf(chat.lastMessage)).toMatchObject([{ url: `${web.url}/wool`, title: "Wool" }]);
    const read = await history(url);
    expect(sourcesOf(read.at(-1))).toEqual(sourcesOf(chat.lastMessage));
    expect(essence(read)).toEqual(essence(chat.messages));
    expect(web.heard.map(({ path }) => path)).toEqual(["/robots.txt", "/wool"]);
  });

  test("replaces the first answer with another", async () => {
    const { url, chat } = await started([{ say: "One." }, { say: "Two." }]);
    await chat.sendMessage({ text: "count" });
    await chat.regenerate();
    expect(chat.messages.map(textOf)).toEqual(["count", "Two."]);
    expect((await history(url)).map(textOf)).toEqual(["count", "Two."]);
  });

  test("edits a message: later ones are removed on both sides", async () => {
    const { url, chat } = await started([{ say: "A." }, { say: "B." }, { say: "C." }]);
    await chat.sendMessage({ text: "first" });
    await chat.sendMessage({ text: "second" });
    await chat.sendMessage({ text: "other", messageId: chat.messages[0]?.id ?? "" });
    expect(chat.messages.map(textOf)).toEqual(["other", "C."]);
    expect((await history(url)).map(textOf)).toEqual(["other", "C."]);
  });

  test("a page that did not fetch the chat's messages adds to them", async () => {
    const { url, chat } = await started([{ say: "A." }, { say: "B." }, { say: "C." }]);
    await chat.sendMessage({ text: "first" });
    await chat.sendMessage({ text: "second" });
    const { chat: reloaded } = page(url);
    await reloaded.sendMessage({ text: "third" });
    expect((await history(url)).map(textOf)).toEqual(["first", "A.", "second", "B.", "third", "C."]);
  });

  test("replaces a message that the page has dropped from its list", async () => {
    const { url, chat } = await started([{ say: "A." }, { say: "B." }, { say: "C." }]);
    await chat.sendMessage({ text: "first" });
    await chat.sendMessage({ text: "second" });
    chat.messages = chat.messages.slice(0, 2);
    await chat.sendMessage({ text: "instead" });
    expect((await history(url)).map(textOf)).toEqual(["first", "A.", "instead", "C."]);
  });

  test("shows the provider's error, and keeps the received text", async () => {
    const { chat } = await started([
      { say: "Half of", fail: { code: "model_rejected", message: "The provider said no." } },
    ]);
    await chat.sendMessage({ text: "go" });
    expect(chat.status).toBe("error");
    expect(chat.error?.message).toContain("The provider said no.");
    expect(textOf(chat.lastMessage)).toBe("Half of");
  });

  test("shows the text of a refusal", async () => {
    const { url } = await started([{ say: "ok" }]);
    const { chat } = page(url, { id: "c2" });
    await chat.sendMessage({
      parts: [{ type: "file", mediaType: "image/png", url: "https://example.com/a.png" }],
    });
    expect(chat.status).toBe("error");
    expect(chat.error?.message).toContain("Only `data:` URLs");
    const unknown = await postJson(`${url}/ai-sdk/unknown/chat`, {
      id: "c3",
      messages: [{ id: "m", role: "user", parts: [{ type: "text", text: "x" }] }],
    });
    expect([unknown.status, unknown.headers.get("content-type")]).toEqual([400, "text/plain; charset=utf-8"]);
  });

  test("that sends a message again starts one run", async () => {
    let asked = 0;
    const { url } = await started(() => ({ say: `Answer${++asked}` }));
    const send = async () => {
      const response = await postJson(`${url}/ai-sdk/assistant/chat`, {
        id: "c1",
        messages: [{ id: "m1", role: "user", parts: [{ type: "text", text: "x" }] }],
      });
      return response.text();
    };
    const [first, second] = await Promise.all([send(), send()]);
    const third = await send();
    expect(new Set([first, second, third]).size).toBe(1);
    expect(first).toContain("Answer1");
    expect(first.trimEnd().endsWith("data: [DONE]")).toBe(true);
    expect(asked).toBe(1);
  });

  test("shows a subagent's work as one part, separate from the agent's own text", async () => {
    const { url } = await startServer(HELPED);
    const { chat } = page(url);
    await chat.sendMessage({ text: "ask the helper" });
    expect(textOf(chat.lastMessage)).toBe("Red, says the helper.");
    expect(chat.lastMessage?.parts.filter(({ type }) => type === "data-subagent")).toMatchObject([
      { data: { agent: "helper", status: "completed", summary: expect.stringContaining("It is red.") } },
    ]);
  });

  test("retracts the text of a failed attempt", async () => {
    const { chat } = await started([
      { say: "Half of", fail: { code: "model_overloaded", message: "busy", retry_after_ms: 1 } },
      { say: "The whole." },
    ]);
    await chat.sendMessage({ text: "go" });
    expect(textOf(chat.lastMessage)).toBe("The whole.");
  });

  test.each(["5", "6"])("of version %s receives no chunk that it does not know", async (version) => {
    const { url } = await started([
      { say: "Half of", fail: { code: "model_overloaded", message: "busy", retry_after_ms: 1 } },
      { say: "May I?", call: [{ tool: "execute", args: { command: "echo hi" } }] },
    ]);
    const response = await postJson(`${url}/ai-sdk/assistant/chat?v=${version}`, {
      id: "c1",
      messages: [{ role: "user", parts: [{ type: "text", text: "go" }] }],
    });
    const types = [...(await response.text()).matchAll(/^data: \{"type":"([^"]+)"/gm)].map(
      ([, type]) => type,
    );
    expect(types).toContain("finish");
    expect(types).not.toContain("reset-step");
    expect(types.includes("tool-approval-request")).toBe(version === "6");
  });

  test("shows the user's messages to the running agent", async () => {
    const { tool, open, entered } = gate();
    const { url } = await startServer({ script: gated, tools: [tool], agents: WITH_GATE });
    const { chat } = page(url);
    const sending = chat.sendMessage({ text: "go" });
    await entered;
    const [run] = await runsOf(url, "chat1");
    const steered = await postJson(`${url}/threads/chat1/runs/${run?.id}/messages`, { input: "Be quick." });
    expect(steered.status).toBe(202);
    open();
    await sending;
    expect(chat.lastMessage?.parts).toContainEqual(
      expect.objectContaining({ type: "steering-message", parts: [{ type: "text", text: "Be quick." }] }),
    );
    expect(textOf(chat.lastMessage)).toBe("Wait.|Through.");
  });

  test("sends images, and the model sees them", async () => {
    let seen: unknown;
    const { chat } = await started(({ messages }) => {
      seen = messages.at(-1)?.content;
      return { say: "A dot." };
    });
    const data = Buffer.from("not really an image").toString("base64");
    await chat.sendMessage({
      text: "What is it?",
      files: [{ type: "file", mediaType: "image/png", url: `data:image/png;base64,${data}` }],
    });
    expect(chat.status).toBe("ready");
    expect(seen).toEqual([
      { type: "image", media_type: "image/png", data },
      { type: "text", text: "What is it?" },
    ]);
  });
});
