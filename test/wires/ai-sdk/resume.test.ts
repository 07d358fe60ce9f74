// Pages with `useChat` that are opened while an answer is written, or lose their connection, against the whole server.

import { describe, expect, onTestFinished, test } from "vitest";
import { cuttingProxy } from "../../support/cutting-proxy.ts";
import { heldAfter } from "../../support/gate.ts";
import { startServer } from "../../support/server.ts";
import { until } from "../../support/until.ts";
import { FILE_AGENTS } from "../agents.ts";
import { essence, history, page, started, textOf, toolsOf } from "./page.ts";

describe("a page with useChat", () => {
  const words = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");

  test("that is opened during an answer shows the whole answer once", async () => {
    const words = Array.from({ length: 30 }, (_, index) => `word${index}`).join(" ");
    const { url, chat } = await started([{ say: words, delay_ms: 20 }]);
    const sending = chat.sendMessage({ text: "go" });
    await until(() => (textOf(chat.lastMessage) ?? "").includes("word3"));
    const { chat: again } = page(url, { messages: await history(url) });
    await again.resumeStream();
    await sending;
    expect(textOf(again.lastMessage)).toBe(words);
    expect(essence(again.messages)).toEqual(essence(chat.messages));
  });

  test("that repeats its key with another message id gets the same run", async () => {
    const { url } = await started([{ say: "Hello." }, { say: "Hello again." }]);
    const send = async (id: string) => {
      const message = { id, role: "user", parts: [{ type: "text", text: "Hi" }] };
      const headers = { "content-type": "application/json", "idempotency-key": "key-1" };
      const body = JSON.stringify({ id: "chat1", messages: [message] });
      await (await fetch(`${url}/ai-sdk/assistant/chat`, { method: "POST", headers, body })).text();
    };
    await send("msg_1");
    await send("msg_2");
    expect((await history(url)).map(textOf)).toEqual(["Hi", "Hello."]);
  });

  test("that is opened after a step of the answer shows each step once", async () => {
    const { url, chat } = await started([
      { say: "First a file.", call: [{ tool: "write_file", args: { path: "a.txt", content: "1" } }] },
      { say: words, delay_ms: 20 },
    ]);
    const sending = chat.sendMessage({ text: "go" });
    await until(() => (textOf(chat.lastMessage) ?? "").includes("word3"));
    const { chat: again } = page(url, { messages: await history(url) });
    await again.resumeStream();
    await sending;
    expect(textOf(again.lastMessage)).toBe(`First a file.|${words}`);
    expect(essence(again.messages)).toEqual(essence(chat.messages));
  });

  test.each([
    ["an approval", { tool: "execute", args: { command: "rm one" } }],
    ["a question", { tool: "ask_user", args: { question: "Which?" } }],
  ])("that is opened while the run after %s is active shows the whole answer once", async (_, call) => {
    const { url, chat } = await started([
      { say: "May I?", call: [call] },
      { say: words, delay_ms: 20 },
    ]);
    await chat.sendMessage({ text: "go" });
    const [asked] = toolsOf(chat.lastMessage);
    const answering =
      call.tool === "execute"
        ? chat.addToolApprovalResponse({ id: asked?.approval?.id ?? "", approved: true })
        : chat.addToolOutput({ tool: call.tool, toolCallId: asked?.toolCallId ?? "", output: "That." });
    await until(() => (textOf(chat.lastMessage) ?? "").includes("word3"));
    const { chat: again, calls } = page(url, { messages: await history(url) });
    await again.resumeStream();
    await answering;
    expect(textOf(again.lastMessage)).toBe(`May I?|${words}`);
    expect(toolsOf(again.lastMessage)).toMatchObject([{ toolName: call.tool, state: "output-available" }]);
    expect(again.status).toBe("ready");
    expect(calls).toEqual([]);
    await until(() => chat.status === "ready");
    expect(textOf(chat.lastMessage)).toBe(`May I?|${words}`);
  });

  test("that has read its messages during an answer and connects after the end shows the whole answer once", async () => {
    const { url, chat } = await started([
      { say: "First a file.", call: [{ tool: "write_file", args: { path: "a.txt", content: "1" } }] },
      { say: words, delay_ms: 20 },
    ]);
    const sending = chat.sendMessage({ text: "go" });
    await until(() => (textOf(chat.lastMessage) ?? "").includes("word3"));
    const before = await history(url);
    await sending;
    const { chat: late } = page(url, { messages: before });
    await late.resumeStream();
    expect(essence(late.messages)).toEqual(essence(chat.messages));
    const { chat: whole } = page(url, { messages: await history(url) });
    await whole.resumeStream();
    expect(essence(whole.messages)).toEqual(essence(chat.messages));
    expect(whole.status).toBe("ready");
  });

  test("of version 6, which would show it twice, does not receive an answer that has ended", async () => {
    const { url, chat } = await started([{ say: "Done." }]);
    await chat.sendMessage({ text: "go" });
    expect((await fetch(`${url}/ai-sdk/assistant/chat/chat1/stream?v=6`)).status).toBe(204);
  });

  test("does not receive again a turn that waits for its answer", async () => {
    const { url, chat } = await started([
      { say: "May I?", call: [{ tool: "execute", args: { command: "rm" } }] },
    ]);
    await chat.sendMessage({ text: "go" });
    expect((await fetch(`${url}/ai-sdk/assistant/chat/chat1/stream`)).status).toBe(204);
  });

  test("has nothing to resume if no turn is active", async () => {
    const { url, chat } = await started([{ say: "Done." }]);
    expect((await fetch(`${url}/ai-sdk/assistant/chat/unknown/stream`)).status).toBe(204);
    await chat.sendMessage({ text: "go" });
    await chat.resumeStream();
    expect(chat.messages.map(textOf)).toEqual(["go", "Done."]);
  });

  test("stops the run without an error, and accepts the next message", async () => {
    const { url, chat } = await started([{ say: "a ".repeat(500), delay_ms: 20 }, { say: "Here again." }]);
    const sending = chat.sendMessage({ text: "go" });
    await until(() => (textOf(chat.lastMessage) ?? "").length > 4);
    expect(
      (
        await fetch(`${url}/ai-sdk/assistant/chat/chat1/stop`, {
          method: "POST",
          headers: { "content-type": "application/json" },
        })
      ).status,
    ).toBe(204);
    await sending;
    expect(chat.status).toBe("ready");
    await chat.sendMessage({ text: "and now?" });
    expect(textOf(chat.lastMessage)).toBe("Here again.");
  });

  test("shows an error if the connection breaks during an answer, and reads the whole answer again", async () => {
    const { model, release } = heldAfter("word3", [{ say: words }]);
    const { url } = await startServer({ model, agents: FILE_AGENTS });
    const proxy = await cuttingProxy(Number(new URL(url).port));
    onTestFinished(() => proxy.close());
    const { chat } = page(`http://127.0.0.1:${proxy.port}`);
    const sending = chat.sendMessage({ text: "go" });
    await until(() => (textOf(chat.lastMessage) ?? "").includes("word3"));
    proxy.cutAll();
    await sending;
    expect(chat.status).toBe("error");
    release();
    const { chat: again } = page(url, { messages: await history(url) });
    await again.resumeStream();
    expect(textOf(again.lastMessage)).toBe(words);
  });

  test("shows an error if the server shuts down during an answer, because half an answer is not the answer", async () => {
    const { url, app } = await startServer({
      script: [{ say: "a ".repeat(500), delay_ms: 20 }],
      agents: FILE_AGENTS,
    });
    const { chat } = page(url);
    const sending = chat.sendMessage({ text: "go" });
    await until(() => (textOf(chat.lastMessage) ?? "").length > 4);
    await app.close();
    await sending;
    expect(chat.status).toBe("error");
  });
});
