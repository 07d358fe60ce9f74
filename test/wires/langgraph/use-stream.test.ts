// `useStream` of LangGraph's SDK, with the options of stock front ends, against the whole server. A reload, a stop and a failure are
// tried in Chromium, in e2e/pages.

import { type UseStreamOptions, useStream } from "@langchain/langgraph-sdk/react";
import { Window } from "happy-dom";
import { createElement } from "react";
import { createRoot } from "react-dom/client";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Script, Turn } from "../../../src/agent/models/scripted.ts";
import { startServer } from "../../support/server.ts";
import { HELPED } from "../../support/team.ts";
import { FILE_AGENTS } from "../agents.ts";

const window = new Window();
beforeAll(() => {
  Object.assign(globalThis, { window, document: window.document });
});
afterAll(async () => {
  Object.assign(globalThis, { window: undefined, document: undefined });
  await window.happyDOM.close();
});

interface State extends Record<string, unknown> {
  messages: { id?: string; type: "human"; content: string }[];
  todos?: { content: string; status: string }[];
  files?: Record<string, string>;
}
type Options = UseStreamOptions<State>;
type Stream = ReturnType<typeof useStream<State>>;

/** A page that draws messages, state and questions. */
function page(url: string, options: Partial<Options> = {}) {
  let stream: Stream | undefined;
  let threadId: string | undefined;
  const errors: unknown[] = [];
  const Page = () => {
    stream = useStream<State>({
      apiUrl: `${url}/langgraph`,
      apiKey: "none",
      assistantId: "assistant",
      fetchStateHistory: true,
      onThreadId: (id: string) => {
        threadId = id;
      },
      onError: (error: unknown) => errors.push(error),
      ...options,
    } as Options);
    void [stream.messages, stream.values, stream.interrupt, stream.isLoading];
    return null;
  };
  const root = createRoot(window.document.createElement("div") as unknown as Element);
  root.render(createElement(Page));
  const close = () => root.unmount();
  onTestFinished(close);
  const now = () => {
    if (!stream) throw new Error("The page is not drawn yet.");
    return stream;
  };
  return {
    now,
    errors,
    close,
    threadId: () => threadId,
    shown: () => now().messages.map(({ content }) => content),
    ready: () => expect.poll(() => stream !== undefined && !stream.isThreadLoading).toBe(true),
    idle: () => expect.poll(() => now().isLoading).toBe(false),
  };
}

async function opened(
  script: readonly Turn[] | Script,
  options: Partial<Options> = {},
  agents = FILE_AGENTS,
) {
  const { url } = await startServer({ script, agents });
  const on = page(url, options);
  await on.ready();
  return { url, on };
}

/** As agent-chat-ui sends it. */
const CHAT = { streamMode: ["values" as const], streamSubgraphs: true, streamResumable: true };
const human = (content: string, id: string = crypto.randomUUID()) => ({
  id,
  type: "human" as const,
  content,
});

test("a chat shows each message once, and the same after a reload", async () => {
  const { url, on } = await opened([{ say: "You said {{user}}." }, { say: "And {{user}}." }]);
  await on.now().submit({ messages: [human("one", "u1")] }, CHAT);
  await on.idle();
  await expect.poll(() => on.shown()).toEqual(["one", "You said one."]);
  await on.now().submit(
    { messages: [human("two", "u2")] },
    {
      ...CHAT,
      optimisticValues: (before) => ({
        ...before,
        messages: [...(before.messages ?? []), human("two", "u2")],
      }),
    },
  );
  await on.idle();
  await expect.poll(() => on.shown()).toEqual(["one", "You said one.", "two", "And two."]);
  const again = page(url, { threadId: on.threadId() ?? "" });
  await expect.poll(() => again.shown()).toEqual(on.shown());
  expect(again.now().messages.map(({ id }) => id)).toEqual(on.now().messages.map(({ id }) => id));
  expect(on.errors).toEqual([]);
});

test("another answer, and other text, replace the old ones", async () => {
  const { on } = await opened([{ say: "A." }, { say: "B." }, { say: "C." }]);
  await on.now().submit({ messages: [human("one")] }, CHAT);
  await on.idle();
  await expect.poll(() => on.now().history.length).toBeGreaterThan(1);
  const checkpointOf = (index: number) => {
    const message = on.now().messages[index];
    return message && on.now().getMessagesMetadata(message)?.firstSeenState?.parent_checkpoint;
  };
  await on.now().submit(undefined, { ...CHAT, checkpoint: checkpointOf(1) ?? null });
  await on.idle();
  await expect.poll(() => on.shown()).toEqual(["one", "B."]);
  await on
    .now()
    .submit(
      { messages: [{ type: "human", content: "other" }] },
      { ...CHAT, checkpoint: checkpointOf(0) ?? null },
    );
  await on.idle();
  await expect.poll(() => on.shown()).toEqual(["other", "C."]);
  expect(on.errors).toEqual([]);
});

test("todos, files and an approval are shown, answered, and present after a reload", async () => {
  const { url, on } = await opened(
    [
      {
        call: [
          { tool: "write_todos", args: { todos: [{ id: "1", title: "Write it", status: "in_progress" }] } },
          { tool: "write_file", args: { path: "a.txt", content: "x" } },
          { tool: "execute", args: { command: "echo ran" }, id: "call_1" },
        ],
      },
      { say: "All settled." },
    ],
    { reconnectOnMount: true },
  );
  await on.now().submit({ messages: [human("work")] }, { config: { recursion_limit: 100 } });
  await on.idle();
  const todos = [{ id: "1", content: "Write it", status: "in_progress" }];
  await expect.poll(() => on.now().values.todos).toEqual(todos);
  expect(Object.values(on.now().values.files ?? {})).toEqual(["x"]);
  const again = page(url, { threadId: on.threadId() ?? "" });
  await again.ready();
  for (const each of [on, again])
    await expect
      .poll(() => each.now().interrupt?.value)
      .toMatchObject({ action_requests: [{ name: "execute" }] });
  await again.now().submit(null, { command: { resume: { decisions: [{ type: "approve" }] } } });
  await again.idle();
  await expect.poll(() => again.shown().at(-1)).toBe("All settled.");
  await expect.poll(() => again.now().interrupt).toBeUndefined();
  expect([...on.errors, ...again.errors]).toEqual([]);
});

test("a tool of the page is executed automatically, and the run continues to its end", async () => {
  let read = "";
  const script: Script = ({ messages }, call) => {
    read = JSON.stringify(messages.at(-1));
    return call === 0 ? { call: [{ tool: "where", id: "call_1" }] } : { say: "Vienna, then." };
  };
  const tools = [{ tool: { name: "where" }, execute: async () => ({ city: "Vienna" }) }];
  const { on } = await opened(script, { tools } as unknown as Partial<Options>);
  const where = { name: "where", description: "Where the user is.", parameters: { type: "object" } };
  await on
    .now()
    .submit({ messages: [human("where am I?")] }, { config: { configurable: { tools: [where] } } });
  await expect.poll(() => on.shown().at(-1)).toBe("Vienna, then.");
  expect(read).toContain("Vienna");
  expect(on.errors).toEqual([]);
});

test("a subagent is recognised, with its own messages", async () => {
  const { on } = await opened(
    HELPED.script,
    { filterSubagentMessages: true } as Partial<Options>,
    HELPED.agents,
  );
  await on.now().submit({ messages: [human("ask the helper")] }, { streamSubgraphs: true });
  await on.idle();
  await expect.poll(() => on.shown().at(-1)).toBe("Red, says the helper.");
  const { subagents } = on.now() as unknown as {
    subagents: Map<string, { toolCall: { args: object }; status: string; messages: { content: string }[] }>;
  };
  expect([...subagents.keys()]).toEqual(["call_1"]);
  const subagent = subagents.get("call_1");
  expect(subagent?.toolCall.args).toMatchObject({ subagent_type: "helper", description: "Which colour?" });
  expect(JSON.stringify(subagent?.messages)).toContain("Looking.");
});
