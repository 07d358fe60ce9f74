// LangChain's hook for React, `useStream` of `@langchain/react`, against the whole server.

import { useMessageMetadata, useMessages, useStream } from "@langchain/react";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Script, Turn } from "../../../src/agent/models/scripted.ts";
import { cuttingProxy } from "../../support/cutting-proxy.ts";
import { heldAfter } from "../../support/gate.ts";
import { reactPage } from "../../support/react-page.ts";
import { startServer } from "../../support/server.ts";
import { HELPED } from "../../support/team.ts";
import { FILE_AGENTS } from "../agents.ts";

interface State extends Record<string, unknown> {
  messages: object[];
  todos: object[];
  files: Record<string, string>;
}

interface PageOptions {
  threadId?: string;
  assistantId?: string;
  headers?: Record<string, string>;
}

/** A page with the hook on it, the words of the newest subagent, and where the newest message may be asked for again. */
const page = (url: string, { threadId, assistantId = "assistant", headers = {} }: PageOptions = {}) =>
  reactPage(() => {
    const stream = useStream<State>({
      apiUrl: `${url}/langgraph`,
      assistantId,
      defaultHeaders: headers,
      ...(threadId ? { threadId } : {}),
    });
    const helper = [...stream.subagents.values()].at(-1);
    const words = useMessages(stream, helper ?? { namespace: ["tools:none"] });
    const metadata = useMessageMetadata(stream, stream.messages.at(-1)?.id);
    const { messages, values, toolCalls, interrupts, isLoading, error } = stream;
    return {
      ...{
        stream,
        helper,
        helperWords: words.map(({ text }) => text),
        forkFrom: metadata?.parentCheckpointId,
      },
      ...{ messages, values, toolCalls, interrupts, isLoading, error },
      lines: messages.map(({ type, text }) => `${type}: ${text}`),
    };
  });
type Page = Awaited<ReturnType<typeof page>>;
type Now = Page["current"];

const human = (content: string, id?: string) =>
  ({ messages: [{ type: "human", content, ...(id ? { id } : {}) }] }) as never;
const say = (page: Page, content: string) => page.current.stream.submit(human(content));
/** The page shows these lines, and waits for its user. */
const shows =
  (...lines: string[]) =>
  (now: Now) =>
    !now.isLoading && JSON.stringify(now.lines) === JSON.stringify(lines);
const asks = ({ interrupts, isLoading }: Now) => interrupts.length > 0 && !isLoading;
const decide = ({ current }: Page, ...decisions: object[]) =>
  current.stream.respond({ decisions }, { interruptId: current.interrupts[0]?.id ?? "" });

async function started(script: readonly Turn[] | Script, agents = FILE_AGENTS) {
  const { url, app } = await startServer({ script, agents });
  return { url, app, page: await page(url) };
}

/** What the server's thread says, natively. */
async function read(url: string, path: string) {
  const response = await fetch(`${url}/threads/${path}`);
  return (await response.json()) as { items: { id: string; status: string }[] };
}
const threadIdOf = ({ current }: Page) => current.stream.threadId ?? "";
const ASKING: Turn = { say: "May I?", call: [{ tool: "execute", args: { command: "echo hi" } }] };

describe("a page with useStream", () => {
  test("shows text immediately, each message once", async () => {
    const { page } = await started([{ think: "Let me see.", say: "You said {{user}}." }, { say: "Again." }]);
    await say(page, "hello");
    await page.until(shows("human: hello", "ai: You said hello."));
    await say(page, "more");
    await page.until(shows("human: hello", "ai: You said hello.", "human: more", "ai: Again."));
    expect(page.current.error).toBeUndefined();
  });

  test("shows tools of the server with their results, todos and files", async () => {
    const { page } = await started([
      {
        say: "Working.",
        call: [
          { tool: "write_todos", args: { todos: [{ id: "1", title: "Write it", status: "done" }] } },
          { tool: "write_file", args: { path: "a.txt", content: "all of it" } },
        ],
      },
      { say: "Done." },
    ]);
    await say(page, "work");
    await page.until(({ isLoading, lines }) => !isLoading && lines.at(-1) === "ai: Done.");
    expect(page.current.toolCalls).toMatchObject([
      { name: "write_todos", status: "finished" },
      { name: "write_file", status: "finished", input: { path: "a.txt", content: "all of it" } },
    ]);
    const { values } = page.current;
    expect(Object.keys(values).toSorted()).toEqual(["files", "messages", "todos"]);
    expect(values.todos).toEqual([{ id: "1", content: "Write it", status: "completed" }]);
    expect(Object.values(values.files)).toEqual(["all of it"]);
  });

  test("recognises a subagent, and keeps its text separate from the agent's", async () => {
    const { page } = await started(HELPED.script, HELPED.agents);
    await say(page, "ask the helper");
    await page.until(({ isLoading, lines }) => !isLoading && lines.at(-1) === "ai: Red, says the helper.");
    await page.until(({ helperWords }) => helperWords.some((words) => words === "Looking."));
    expect(page.current.stream.subagents.size).toBe(1);
    expect(page.current.helper).toMatchObject({
      name: "helper",
      taskInput: "Which colour?",
      status: "complete",
    });
    expect(page.current.lines.join()).not.toContain("Looking.");
  });

  test("approves a call: it is asked once, and the run continues", async () => {
    const { page } = await started([ASKING, { say: "It said hi." }]);
    await say(page, "run it");
    await page.until(asks);
    expect(page.current.interrupts).toHaveLength(1);
    expect(page.current.interrupts[0]?.value).toMatchObject({
      actionRequests: [{ name: "execute", args: { command: "echo hi" }, description: "May it?" }],
    });
    await decide(page, { type: "approve" });
    await page.until(({ isLoading, lines }) => !isLoading && lines.at(-1) === "ai: It said hi.");
    expect(page.current.interrupts).toEqual([]);
    expect(page.current.toolCalls).toMatchObject([{ name: "execute", status: "finished" }]);
  });

  test("denies a call with a reason, which the model receives, and edits another", async () => {
    let heard = "";
    const { page } = await started(({ messages }, call) => {
      heard = JSON.stringify(messages);
      if (call < 2) return { call: [{ tool: "execute", args: { command: "echo one" } }] };
      return { say: "As you like." };
    });
    await say(page, "run it");
    await page.until(asks);
    const [first] = page.current.interrupts;
    await decide(page, { type: "reject", message: "Not that way." });
    await page.until((now) => asks(now) && now.interrupts[0]?.id !== first?.id);
    expect(heard).toContain("Not that way.");
    await decide(page, { type: "edit", edited_action: { name: "execute", args: { command: "echo two" } } });
    await page.until(({ isLoading, lines }) => !isLoading && lines.at(-1) === "ai: As you like.");
    expect(heard).toContain("two");
  });

  test("finds a question after a reload, and answers it", async () => {
    const { url, page: before } = await started([ASKING, { say: "It said hi." }]);
    await say(before, "run it");
    await before.until(asks);
    before.close();
    const again = await page(url, { threadId: threadIdOf(before) });
    await again.until(asks);
    expect(again.current.interrupts).toHaveLength(1);
    await decide(again, { type: "approve" });
    await again.until(({ isLoading, lines }) => !isLoading && lines.at(-1) === "ai: It said hi.");
    expect(again.current.interrupts).toEqual([]);
    expect((await read(url, `${threadIdOf(again)}/runs`)).items).toHaveLength(2);
  });

  test("cancels the run, without an error, and sends the next message", async () => {
    const { url, page } = await started((_, call) =>
      call === 0 ? { say: "word ".repeat(300), delay_ms: 20 } : { say: "Next." },
    );
    void say(page, "talk");
    await page.until(({ lines }) => lines.some((line) => line.startsWith("ai: word")));
    await page.current.stream.stop();
    const runs = async () => (await read(url, `${threadIdOf(page)}/runs`)).items.map(({ status }) => status);
    await expect.poll(runs).toEqual(["cancelled"]);
    expect(page.current.error).toBeUndefined();
    await say(page, "next");
    await page.until(({ isLoading, lines }) => !isLoading && lines.at(-1) === "ai: Next.");
    expect(await runs()).toEqual(["success", "cancelled"]);
  });

  test("has all text once if the connection breaks during an answer", async () => {
    const words = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");
    const { url } = await startServer({ script: [{ say: words, delay_ms: 20 }], agents: FILE_AGENTS });
    const proxy = await cuttingProxy(Number(new URL(url).port));
    onTestFinished(() => proxy.close());
    const cut = await page(`http://127.0.0.1:${proxy.port}`);
    void say(cut, "go");
    for (const word of ["word5 ", "word30 "]) {
      await cut.until(({ lines }) => lines.join().includes(word));
      proxy.cutAll();
    }
    await cut.until(shows("human: go", `ai: ${words}`));
    expect(cut.current.error).toBeUndefined();
    expect((await read(url, `${threadIdOf(cut)}/runs`)).items).toHaveLength(1);
  });

  test("shows all text once if it is opened during an answer", async () => {
    const words = Array.from({ length: 150 }, (_, index) => `word${index}`).join(" ");
    const { model, release } = heldAfter("word5", [{ say: "Before." }, { say: words }]);
    const { url } = await startServer({ model, agents: FILE_AGENTS });
    const before = await page(url);
    await say(before, "first");
    void say(before, "go");
    await before.until(({ lines }) => lines.join().includes("word5"));
    before.close();
    const again = await page(url, { threadId: threadIdOf(before) });
    await again.until(({ isLoading }) => isLoading);
    release();
    await again.until(shows("human: first", "ai: Before.", "human: go", `ai: ${words}`));
  });

  test("finds the streamed messages after a reload, with the same ids", async () => {
    const { url, page: before } = await started([
      { say: "Working.", call: [{ tool: "write_file", args: { path: "a.txt", content: "x" } }] },
      { say: "Done." },
    ]);
    await say(before, "work");
    await before.until(({ isLoading, lines }) => !isLoading && lines.at(-1) === "ai: Done.");
    const again = await page(url, { threadId: threadIdOf(before) });
    await again.until(({ lines }) => lines.length >= before.current.lines.length);
    const essence = ({ messages }: Now) => messages.map(({ id, type, text }) => ({ id, type, text }));
    expect(essence(again.current)).toEqual(essence(before.current));
  });

  test("replaces the first answer with another, and the first is removed on both sides", async () => {
    const { url, page } = await started([{ say: "One." }, { say: "Two." }]);
    await say(page, "count");
    await page.until(shows("human: count", "ai: One."));
    const { forkFrom } = page.current;
    expect(forkFrom).toEqual(expect.any(String));
    await page.current.stream.submit(undefined, { forkFrom: forkFrom ?? "" });
    await page.until(shows("human: count", "ai: Two."));
    expect((await read(url, `${threadIdOf(page)}/messages`)).items).toHaveLength(2);
  });

  test("edits a message: later ones are removed on both sides", async () => {
    const { url, page } = await started([{ say: "One." }, { say: "Two." }, { say: "Three." }]);
    await say(page, "first");
    await page.until(shows("human: first", "ai: One."));
    const [said] = page.current.messages;
    await say(page, "second");
    await page.until(({ isLoading, lines }) => !isLoading && lines.length === 4);
    await page.current.stream.submit(human("other", said?.id));
    await page.until(shows("human: other", "ai: Three."));
    expect((await read(url, `${threadIdOf(page)}/messages`)).items).toHaveLength(2);
  });

  test("shows the provider's error, and keeps the text until then", async () => {
    const { page } = await started([
      { say: "Half of", fail: { code: "model_rejected", message: "No more." } },
    ]);
    await say(page, "go");
    await page.until(({ isLoading, error }) => !isLoading && error !== undefined);
    expect(String(page.current.error)).toContain("No more.");
    await page.until(shows("human: go", "ai: Half of"));
  });

  test("retracts the text of a failed attempt", async () => {
    const { page } = await started([
      { say: "Half of", fail: { code: "model_overloaded", message: "busy", retry_after_ms: 1 } },
      { say: "The whole." },
    ]);
    await say(page, "go");
    await page.until(shows("human: go", "ai: The whole."));
  });

  test("of an unknown agent shows an error with its name", async () => {
    const { url } = await startServer({ agents: FILE_AGENTS });
    const wrong = await page(url, { assistantId: "missing" });
    await say(wrong, "go");
    await wrong.until(({ error }) => error !== undefined);
    expect(String(wrong.current.error)).toContain("missing");
  });
});
