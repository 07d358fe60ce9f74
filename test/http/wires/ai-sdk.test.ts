// The AI SDK's own client, `Chat` of `useChat`, against the whole server.

import { Chat } from "@ai-sdk/react";
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from "ai";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../../src/core/tool.ts";
import type { Script, Turn } from "../../../src/models/scripted.ts";
import { cuttingProxy } from "../../support/cutting-proxy.ts";
import { startServer } from "../../support/server.ts";
import { HELPED } from "../../support/team.ts";

const AGENTS = `
agents:
  assistant:
    model: scripted:test
    backend: { type: local }
    tools: [ask_user, write_todos, write_file, read_file, execute]
    permissions: { rules: [{ allow: write_file }, { ask: execute, message: May it? }] }
`;

const whenAnswered = (options: { messages: UIMessage[] }) =>
  lastAssistantMessageIsCompleteWithApprovalResponses(options) ||
  lastAssistantMessageIsCompleteWithToolCalls(options);

interface PageOptions {
  id?: string;
  messages?: UIMessage[];
  query?: string;
  body?: object;
}

/** A page with `useChat` on it. */
function page(url: string, { id = "chat1", messages = [], query = "", body }: PageOptions = {}) {
  const calls: string[] = [];
  const chat = new Chat({
    id,
    messages,
    transport: new DefaultChatTransport({
      api: `${url}/ai-sdk/assistant/chat${query}`,
      ...(body ? { body } : {}),
    }),
    sendAutomaticallyWhen: whenAnswered,
    onToolCall: ({ toolCall }) => {
      calls.push(toolCall.toolName);
    },
  });
  return { chat, calls };
}

const history = async (url: string, id = "chat1") =>
  (await (await fetch(`${url}/ai-sdk/assistant/chat/${id}/messages`)).json()) as UIMessage[];

async function started(script: readonly Turn[] | Script, options: PageOptions = {}) {
  const { url } = await startServer({ script, agents: AGENTS });
  return { url, ...page(url, options) };
}

const textOf = (message: UIMessage | undefined) =>
  message?.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("|");
const toolsOf = (message: UIMessage | undefined) =>
  message?.parts.flatMap((part) => (part.type === "dynamic-tool" ? [part] : [])) ?? [];

/** What a reader sees of messages: the same when they are streamed and when they are read later. */
const essence = (messages: readonly UIMessage[]) =>
  messages.map(({ id, role, parts }) => ({
    id,
    role,
    parts: parts.map((part) => {
      if (part.type === "text" || part.type === "reasoning") return { type: part.type, text: part.text };
      if (part.type === "dynamic-tool")
        return { name: part.toolName, state: part.state, input: part.input, output: part.output };
      return "data" in part ? { type: part.type, data: part.data } : { type: part.type };
    }),
  }));

describe("a page with useChat", () => {
  test("shows what the agent thinks and says, and finds the same after a reload", async () => {
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

  test("shows tools of the server with their results, and is not asked to carry them out", async () => {
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

  test("approves a call: it runs, in the same message", async () => {
    const { chat } = await started([
      { say: "May I?", call: [{ tool: "execute", args: { command: "echo hi" } }] },
      { say: "It said hi." },
    ]);
    await chat.sendMessage({ text: "run it" });
    const [asked] = toolsOf(chat.lastMessage);
    expect(asked).toMatchObject({ state: "approval-requested", input: { command: "echo hi" } });
    await answered(chat, () =>
      chat.addToolApprovalResponse({ id: asked?.approval?.id ?? "", approved: true }),
    );
    expect(chat.messages).toHaveLength(2);
    expect(toolsOf(chat.lastMessage)[0]).toMatchObject({
      state: "output-available",
      output: expect.stringContaining("hi"),
    });
    expect(textOf(chat.lastMessage)).toBe("May I?|It said hi.");
  });

  test("denies a call with a reason, which the model reads", async () => {
    let read = "";
    const { chat } = await started(({ messages }, call) => {
      read = JSON.stringify(messages);
      return call === 0
        ? { call: [{ tool: "execute", args: { command: "echo hi" } }] }
        : { say: "As you like." };
    });
    await chat.sendMessage({ text: "run it" });
    const [asked] = toolsOf(chat.lastMessage);
    const id = asked?.approval?.id ?? "";
    await answered(chat, () => chat.addToolApprovalResponse({ id, approved: false, reason: "Not today." }));
    expect(toolsOf(chat.lastMessage)[0]?.state).toBe("output-denied");
    expect(read).toContain("Not today.");
  });

  test("answers a question, also after a reload", async () => {
    const { url, chat } = await started([
      { call: [{ tool: "ask_user", args: { question: "Which?", options: ["red", "blue"] } }] },
      { say: "Blue it is." },
    ]);
    await chat.sendMessage({ text: "ask me" });
    expect(toolsOf(chat.lastMessage)[0]?.state).toBe("input-available");
    const { chat: again } = page(url, { messages: await history(url) });
    const [asked] = toolsOf(again.lastMessage);
    expect(asked).toMatchObject({ toolName: "ask_user", state: "input-available" });
    await answered(again, () =>
      again.addToolOutput({ tool: "ask_user", toolCallId: asked?.toolCallId ?? "", output: "blue" }),
    );
    expect(textOf(again.lastMessage)).toBe("Blue it is.");
    expect(again.messages).toHaveLength(2);
  });

  test.each([
    ["a question", { tool: "ask_user", args: { question: "Which?" } }],
    ["an approval", { tool: "execute", args: { command: "echo hi" } }],
  ])("says something else instead of answering %s", async (_, call) => {
    const { url, chat } = await started([{ say: "May I?", call: [call] }, { say: "Never mind, then." }]);
    await chat.sendMessage({ text: "ask me" });
    await chat.sendMessage({ text: "never mind" });
    expect([chat.status, chat.error]).toEqual(["ready", undefined]);
    expect(chat.messages.map(textOf)).toEqual(["ask me", "May I?", "never mind", "Never mind, then."]);
    expect((await history(url)).map(textOf)).toEqual(chat.messages.map(textOf));
  });

  test("carries out a tool of its own, and the model reads the result", async () => {
    let read = "";
    const body = { tools: { where: { description: "Where the user is.", parameters: { type: "object" } } } };
    const { chat, calls } = await started(
      ({ messages }, call) => {
        read = JSON.stringify(messages);
        return call === 0 ? { call: [{ tool: "where" }] } : { say: "Vienna, then." };
      },
      { body },
    );
    await chat.sendMessage({ text: "where am I?" });
    expect(calls).toEqual(["where"]);
    const [call] = toolsOf(chat.lastMessage);
    await answered(chat, () =>
      chat.addToolOutput({ tool: "where", toolCallId: call?.toolCallId ?? "", output: { city: "Vienna" } }),
    );
    expect(read).toContain("Vienna");
    expect(textOf(chat.lastMessage)).toBe("Vienna, then.");
  });

  test("gets another answer in place of the first", async () => {
    const { url, chat } = await started([{ say: "One." }, { say: "Two." }]);
    await chat.sendMessage({ text: "count" });
    await chat.regenerate();
    expect(chat.messages.map(textOf)).toEqual(["count", "Two."]);
    expect((await history(url)).map(textOf)).toEqual(["count", "Two."]);
  });

  test("edits what was said: what followed is forgotten on both sides", async () => {
    const { url, chat } = await started([{ say: "A." }, { say: "B." }, { say: "C." }]);
    await chat.sendMessage({ text: "first" });
    await chat.sendMessage({ text: "second" });
    await chat.sendMessage({ text: "other", messageId: chat.messages[0]?.id ?? "" });
    expect(chat.messages.map(textOf)).toEqual(["other", "C."]);
    expect((await history(url)).map(textOf)).toEqual(["other", "C."]);
  });

  test("replaces a message that the page has dropped from its list", async () => {
    const { url, chat } = await started([{ say: "A." }, { say: "B." }, { say: "C." }]);
    await chat.sendMessage({ text: "first" });
    await chat.sendMessage({ text: "second" });
    chat.messages = chat.messages.slice(0, 2);
    await chat.sendMessage({ text: "instead" });
    expect((await history(url)).map(textOf)).toEqual(["first", "A.", "instead", "C."]);
  });

  test("that is opened in mid-answer shows the whole answer once", async () => {
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

  const words = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");

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
  ])("that is opened while the run after %s is at work shows the whole answer once", async (_, call) => {
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

  test("that has read its messages in mid-answer and connects after the end shows the whole answer once", async () => {
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

  test("of version 6, which would show it twice, does not get an answer that has ended", async () => {
    const { url, chat } = await started([{ say: "Done." }]);
    await chat.sendMessage({ text: "go" });
    expect((await fetch(`${url}/ai-sdk/assistant/chat/chat1/stream?v=6`)).status).toBe(204);
  });

  test("does not get again what waits for its answer", async () => {
    const { url, chat } = await started([
      { say: "May I?", call: [{ tool: "execute", args: { command: "rm" } }] },
    ]);
    await chat.sendMessage({ text: "go" });
    expect((await fetch(`${url}/ai-sdk/assistant/chat/chat1/stream`)).status).toBe(204);
  });

  test("has nothing to resume when nothing is at work", async () => {
    const { url, chat } = await started([{ say: "Done." }]);
    expect((await fetch(`${url}/ai-sdk/assistant/chat/unknown/stream`)).status).toBe(204);
    await chat.sendMessage({ text: "go" });
    await chat.resumeStream();
    expect(chat.messages.map(textOf)).toEqual(["go", "Done."]);
  });

  test("stops the run without an error, and takes the next message", async () => {
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

  test("is in error with the provider's words, and keeps what came", async () => {
    const { chat } = await started([
      { say: "Half of", fail: { code: "model_rejected", message: "The provider said no." } },
    ]);
    await chat.sendMessage({ text: "go" });
    expect(chat.status).toBe("error");
    expect(chat.error?.message).toContain("The provider said no.");
    expect(textOf(chat.lastMessage)).toBe("Half of");
  });

  test("shows in which words it is refused", async () => {
    const { url } = await started([{ say: "ok" }]);
    const { chat } = page(url, { id: "c2" });
    await chat.sendMessage({
      parts: [{ type: "file", mediaType: "image/png", url: "https://example.com/a.png" }],
    });
    expect(chat.status).toBe("error");
    expect(chat.error?.message).toContain("Only `data:` URLs");
    const unknown = await fetch(`${url}/ai-sdk/unknown/chat`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        id: "c3",
        messages: [{ id: "m", role: "user", parts: [{ type: "text", text: "x" }] }],
      }),
    });
    expect([unknown.status, unknown.headers.get("content-type")]).toEqual([400, "text/plain; charset=utf-8"]);
  });

  test("that sends a message again starts one run", async () => {
    let asked = 0;
    const { url } = await started(() => ({ say: `Answer${++asked}` }));
    const send = async () => {
      const response = await fetch(`${url}/ai-sdk/assistant/chat`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          id: "c1",
          messages: [{ id: "m1", role: "user", parts: [{ type: "text", text: "x" }] }],
        }),
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

  test("shows a subagent's work as one part, apart from the agent's own words", async () => {
    const { url } = await startServer(HELPED);
    const { chat } = page(url);
    await chat.sendMessage({ text: "ask the helper" });
    expect(textOf(chat.lastMessage)).toBe("Red, says the helper.");
    expect(chat.lastMessage?.parts.filter(({ type }) => type === "data-subagent")).toMatchObject([
      { data: { agent: "helper", status: "completed", summary: expect.stringContaining("It is red.") } },
    ]);
  });

  test("takes back what a failed attempt said", async () => {
    const { chat } = await started([
      { say: "Half of", fail: { code: "model_overloaded", message: "busy", retry_after_ms: 1 } },
      { say: "The whole." },
    ]);
    await chat.sendMessage({ text: "go" });
    expect(textOf(chat.lastMessage)).toBe("The whole.");
  });

  test.each(["5", "6"])("of version %s gets no chunk that it does not know", async (version) => {
    const { url } = await started([
      { say: "Half of", fail: { code: "model_overloaded", message: "busy", retry_after_ms: 1 } },
      { say: "May I?", call: [{ tool: "execute", args: { command: "echo hi" } }] },
    ]);
    const response = await fetch(`${url}/ai-sdk/assistant/chat?v=${version}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ id: "c1", messages: [{ role: "user", parts: [{ type: "text", text: "go" }] }] }),
    });
    const types = [...(await response.text()).matchAll(/^data: \{"type":"([^"]+)"/gm)].map(
      ([, type]) => type,
    );
    expect(types).toContain("finish");
    expect(types).not.toContain("reset-step");
    expect(types.includes("tool-approval-request")).toBe(version === "6");
  });

  test.each(["approve", "No."])(
    "of version 5 is asked in words, and answers %s in words, also after a reload",
    async (word) => {
      const { url, chat } = await started(
        [
          { say: "May I?", call: [{ tool: "execute", args: { command: "echo hi" } }] },
          { say: "So be it." },
          { say: "What?" },
        ],
        { query: "?v=5" },
      );
      await chat.sendMessage({ text: "run it" });
      expect(textOf(chat.lastMessage)).toBe("May I?|May it?\n\nReply “approve” or “deny”.");
      const read = await fetch(`${url}/ai-sdk/assistant/chat/chat1/messages?v=5`);
      const messages = (await read.json()) as UIMessage[];
      expect(essence(messages)).toEqual(essence(chat.messages));
      const { chat: again } = page(url, { messages, query: "?v=5" });
      await again.sendMessage({ text: word });
      expect(again.status).toBe("ready");
      expect(textOf(again.lastMessage)).toBe("So be it.");
      const [call] = toolsOf((await history(url)).at(-1));
      expect(call?.state).toBe(word === "approve" ? "output-available" : "output-error");
      await again.sendMessage({ text: "approve" });
      expect((await history(url)).map(textOf).slice(2)).toEqual(["approve", "What?"]);
    },
  );

  test("is in error when the connection breaks in mid-answer, and reads the whole answer again", async () => {
    const words = Array.from({ length: 40 }, (_, index) => `word${index}`).join(" ");
    const { url } = await started([{ say: words, delay_ms: 10 }]);
    const proxy = await cuttingProxy(Number(new URL(url).port));
    onTestFinished(() => proxy.close());
    const { chat } = page(`http://127.0.0.1:${proxy.port}`);
    const sending = chat.sendMessage({ text: "go" });
    await until(() => (textOf(chat.lastMessage) ?? "").includes("word3"));
    proxy.cutAll();
    await sending;
    expect(chat.status).toBe("error");
    const { chat: again } = page(url, { messages: await history(url) });
    await again.resumeStream();
    expect(textOf(again.lastMessage)).toBe(words);
  });

  test("is in error when the server shuts down in mid-answer: half an answer is not the answer", async () => {
    const { url, app } = await startServer({
      script: [{ say: "a ".repeat(500), delay_ms: 20 }],
      agents: AGENTS,
    });
    const { chat } = page(url);
    const sending = chat.sendMessage({ text: "go" });
    await until(() => (textOf(chat.lastMessage) ?? "").length > 4);
    await app.close();
    await sending;
    expect(chat.status).toBe("error");
  });

  test("shows what the user says to the running agent", async () => {
    const gate = Promise.withResolvers<void>();
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: z.object({}),
      annotations: { requiresPermission: false },
      execute: async () => {
        await gate.promise;
        return "seen";
      },
    });
    const { url } = await startServer({
      script: [{ say: "Looking.", call: [{ tool: "look" }] }, { say: "As you say." }],
      tools: [look],
      agents: "agents: { assistant: { model: 'scripted:test', tools: [look], backend: { type: local } } }",
    });
    const { chat } = page(url);
    const sending = chat.sendMessage({ text: "go" });
    await until(() => toolsOf(chat.lastMessage).length > 0);
    const runs = (await (await fetch(`${url}/threads/chat1/runs`)).json()) as { items: { id: string }[] };
    const steered = await fetch(`${url}/threads/chat1/runs/${runs.items[0]?.id}/messages`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ input: "Be quick." }),
    });
    expect(steered.status).toBe(202);
    gate.resolve();
    await sending;
    expect(chat.lastMessage?.parts).toContainEqual(
      expect.objectContaining({ type: "steering-message", parts: [{ type: "text", text: "Be quick." }] }),
    );
    expect(textOf(chat.lastMessage)).toBe("Looking.|As you say.");
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

/** Resolves when the request that the answer causes is over. */
async function answered(chat: Chat<UIMessage>, answer: () => unknown): Promise<void> {
  const before = chat.lastMessage?.parts.length ?? 0;
  await answer();
  await until(() => chat.status === "ready" && (chat.lastMessage?.parts.length ?? 0) > before);
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}
