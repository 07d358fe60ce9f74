// Approvals, questions and the page's own tools with `useChat`, against the whole server.

import type { UIMessage } from "ai";
import { describe, expect, test } from "vitest";
import { answered, essence, history, page, started, textOf, toolsOf } from "./page.ts";

describe("a page with useChat", () => {
  test("approves a call, which runs in the same message", async () => {
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

  test("denies a call with a reason, which the model receives", async () => {
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

  test("answers two approvals one after another: each run resumes the previous one, and none asks again", async () => {
    const execute = (id: string) => ({ tool: "execute", args: { command: `echo ${id}` }, id });
    const { url, chat } = await started([{ call: [execute("c1"), execute("c2")] }, { say: "Done." }]);
    await chat.sendMessage({ text: "run both" });
    const answer = async (id: string) => {
      const approval = { id: `approval_${id}`, approved: true };
      const part = { type: "dynamic-tool", toolCallId: id, state: "approval-responded", approval };
      const message = { id: chat.lastMessage?.id, role: "assistant", parts: [part] };
      const body = JSON.stringify({ id: "chat1", message });
      const headers = { "content-type": "application/json" };
      return (await fetch(`${url}/ai-sdk/assistant/chat`, { method: "POST", headers, body })).text();
    };
    expect(await answer("c1")).not.toContain("tool-approval-request");
    expect(await answer("c2")).toContain("Done.");
    const listed = await (await fetch(`${url}/threads/chat1/runs`)).json();
    const { items: runs } = listed as { items: { id: string; resumes?: string }[] };
    expect(runs.map(({ resumes }) => resumes)).toEqual([runs[1]?.id, runs[2]?.id, undefined]);
  });

  test("answers a question, even after a reload", async () => {
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
  ])("writes something else instead of answering %s", async (_, call) => {
    const { url, chat } = await started([{ say: "May I?", call: [call] }, { say: "Never mind, then." }]);
    await chat.sendMessage({ text: "ask me" });
    await chat.sendMessage({ text: "never mind" });
    expect([chat.status, chat.error]).toEqual(["ready", undefined]);
    expect(chat.messages.map(textOf)).toEqual(["ask me", "May I?", "never mind", "Never mind, then."]);
    expect((await history(url)).map(textOf)).toEqual(chat.messages.map(textOf));
  });

  test("edits its message to an approval word, and nothing is approved", async () => {
    const { url } = await started([
      { say: "May I?", call: [{ tool: "execute", args: { command: "echo hi" } }] },
      { say: "What do you approve?" },
    ]);
    const send = async (text: string) => {
      const message = { id: "msg_1", role: "user", parts: [{ type: "text", text }] };
      const body = JSON.stringify({ id: "chat1", messages: [message] });
      const headers = { "content-type": "application/json" };
      await (await fetch(`${url}/ai-sdk/assistant/chat?v=5`, { method: "POST", headers, body })).text();
    };
    await send("run it");
    await send("approve");
    const messages = await history(url);
    expect(messages.map(textOf)).toEqual(["approve", "What do you approve?"]);
    expect(messages.flatMap(toolsOf)).toEqual([]);
  });

  test("executes its own tool, and the model receives the result", async () => {
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

  test.each(["approve", "No."])(
    "of version 5 is asked with text, and answers %s with text, even after a reload",
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
});
