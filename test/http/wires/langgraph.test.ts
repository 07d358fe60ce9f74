// LangGraph's own SDK against the whole server.

import { Client, type Message as LangChainMessage } from "@langchain/langgraph-sdk";
import { describe, expect, test } from "vitest";
import type { Script, Turn } from "../../../src/models/scripted.ts";
import { startServer } from "../../support/server.ts";
import { HELPED } from "../../support/team.ts";

const AGENTS = `
agents:
  assistant:
    model: scripted:test
    description: Helps.
    backend: { type: local }
    tools: [ask_user, write_todos, write_file, read_file, execute]
    permissions: { rules: [{ allow: write_file }, { ask: execute, message: May it? }] }
`;

const clientFor = (url: string, defaultHeaders: Record<string, string> = {}) =>
  new Client({ apiUrl: `${url}/langgraph`, apiKey: "", defaultHeaders });

async function started(script: readonly Turn[] | Script, agents = AGENTS) {
  const { url } = await startServer({ script, agents });
  return { url, client: clientFor(url) };
}

interface Values {
  messages: LangChainMessage[];
  todos: object[];
  files: Record<string, string>;
  __interrupt__?: { id: string; value: Record<string, unknown> }[];
}
interface Frame {
  id?: string;
  event: string;
  data: unknown;
}

const said = (content: string, id?: string) => ({
  messages: [{ type: "human" as const, content, ...(id ? { id } : {}) }],
});

const all = async (stream: AsyncIterable<unknown>) => {
  const frames: Frame[] = [];
  for await (const frame of stream) frames.push(frame as Frame);
  return frames;
};
const lastValues = (frames: readonly Frame[]) =>
  frames.findLast(({ event }) => event === "values")?.data as Values | undefined;
const contents = (values: { messages: LangChainMessage[] } | undefined) =>
  values?.messages.map(({ content }) => content);
const toolIn = (values: Values | undefined) => values?.messages.find(({ type }) => type === "tool");

/** Puts the pieces of each message together, as front ends do. */
function assembled(frames: readonly Frame[]) {
  const texts = new Map<string, { text: string; thought: string; pieces: number }>();
  for (const { event, data } of frames) {
    if (event !== "messages") continue;
    const [piece] = data as [
      { id: string; type: string; content: string; additional_kwargs?: Record<string, string> },
    ];
    if (piece.type === "remove") texts.delete(piece.id);
    if (piece.type !== "AIMessageChunk") continue;
    const known = texts.get(piece.id) ?? { text: "", thought: "", pieces: 0 };
    texts.set(piece.id, {
      text: known.text + piece.content,
      thought: known.thought + (piece.additional_kwargs?.reasoning_content ?? ""),
      pieces: known.pieces + 1,
    });
  }
  return [...texts.values()];
}

describe("assistants", () => {
  test("are the agents, found by name and by id", async () => {
    const { client } = await started([]);
    const [assistant, ...none] = await client.assistants.search({
      graphId: "assistant",
      metadata: { created_by: "system" },
    });
    expect(none).toEqual([]);
    expect(assistant).toMatchObject({ graph_id: "assistant", name: "assistant", description: "Helps." });
    expect(assistant?.assistant_id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-/);
    expect(await client.assistants.get("assistant")).toEqual(assistant);
    expect(await client.assistants.get(assistant?.assistant_id ?? "")).toEqual(assistant);
    expect(await client.assistants.count()).toBe(1);
    expect(await client.assistants.search({ graphId: "other" })).toEqual([]);
    expect(await client.assistants.getSchemas("assistant")).toMatchObject({ graph_id: "assistant" });
    expect(await client.assistants.getGraph("assistant")).toMatchObject({ nodes: expect.any(Array) });
    expect(await client.assistants.getSubgraphs("assistant")).toEqual({});
  });

  test("that do not exist, and changes of them, are refused in words", async () => {
    const { client } = await started([]);
    await expect(client.assistants.get("none")).rejects.toThrow(/404.*There is no assistant/s);
    await expect(client.assistants.create({ graphId: "assistant" })).rejects.toThrow(
      "Agents are configured by the operator.",
    );
    await expect(client.crons.search()).rejects.toThrow("not supported");
  });
});

describe("a run", () => {
  test("streams what the agent thinks and says, and the thread then holds the same", async () => {
    const { client } = await started([{ think: "Let me see.", say: "You said {{user}} to me." }]);
    const { thread_id } = await client.threads.create({ metadata: { graph_id: "assistant" } });
    const created: unknown[] = [];
    const frames = await all(
      client.runs.stream(thread_id, "assistant", {
        input: said("hello", "u1"),
        streamMode: ["values", "messages-tuple", "updates"],
        onRunCreated: (run) => created.push(run),
      }),
    );
    expect(frames[0]).toMatchObject({ event: "metadata", data: { thread_id, attempt: 1 } });
    expect(frames[0]?.data).toMatchObject(created[0] ?? {});
    expect(created).toEqual([{ run_id: expect.any(String), thread_id }]);
    expect(frames.at(-1)).toMatchObject({ event: "end" });
    for (const { id } of frames) expect(id).toMatch(/^run_\w+:1-\d+\.\d+$/);
    const [spoken] = assembled(frames);
    expect(spoken).toMatchObject({ text: "You said hello to me.", thought: "Let me see." });
    expect(spoken?.pieces).toBeGreaterThan(3);
    const values = lastValues(frames);
    expect(contents(values)).toEqual(["hello", "You said hello to me."]);
    expect(values?.messages[0]?.id).toBe("u1");
    expect(values?.messages[1]).toMatchObject({
      type: "ai",
      additional_kwargs: { reasoning_content: "Let me see." },
      usage_metadata: { total_tokens: expect.any(Number) },
    });
    const state = await client.threads.getState<Values>(thread_id);
    expect(state.values).toEqual(values);
    expect(state).toMatchObject({ next: [], tasks: [], checkpoint: { thread_id } });
    expect(await client.threads.get(thread_id)).toMatchObject({
      status: "idle",
      metadata: { graph_id: "assistant", assistant_id: expect.stringMatching(/-5/) },
      values,
    });
  });

  test("shows tools with their results, todos and files, and nothing of the inside", async () => {
    const { client } = await started([
      {
        call: [
          { tool: "write_todos", args: { todos: [{ id: "1", title: "Write it", status: "done" }] } },
          { tool: "write_file", args: { path: "a.txt", content: "x" } },
        ],
      },
      { say: "Done." },
    ]);
    const frames = await all(
      client.runs.stream("t1", "assistant", {
        input: said("work"),
        streamMode: ["values", "tools"],
        ifNotExists: "create",
      }),
    );
    const values = lastValues(frames);
    expect(values?.messages[1]).toMatchObject({
      tool_calls: [{ name: "write_todos" }, { name: "write_file", args: { path: "a.txt", content: "x" } }],
    });
    expect(toolIn(values)).toMatchObject({ name: "write_todos", status: "success" });
    expect(values?.todos).toEqual([{ id: "1", content: "Write it", status: "completed" }]);
    expect(Object.entries(values?.files ?? {})).toEqual([[expect.stringMatching(/a\.txt$/), "x"]]);
    expect(Object.keys(values ?? {}).toSorted()).toEqual(["files", "messages", "todos"]);
    const tools = frames
      .filter(({ event }) => event === "tools")
      .map(({ data }) => data as { event: string; name: string });
    expect(tools.filter(({ name }) => name === "write_file").map(({ event }) => event)).toEqual([
      "on_tool_start",
      "on_tool_end",
    ]);
  });

  test("in mode messages has each message so far, and at last whole", async () => {
    const { client } = await started([{ say: "one two three" }]);
    const frames = await all(
      client.runs.stream("t1", "assistant", {
        input: said("go"),
        streamMode: "messages",
        ifNotExists: "create",
      }),
    );
    const of = (name: string) => frames.filter(({ event }) => event === name).map(({ data }) => data);
    expect(of("messages/metadata")).toHaveLength(1);
    const partial = of("messages/partial") as [{ content: string }][];
    expect(partial.length).toBeGreaterThan(2);
    expect(partial.at(-1)?.[0].content).toBe("one two three");
    expect(of("messages/complete")).toMatchObject([[{ type: "ai", content: "one two three" }]]);
  });

  test("is waited for, and joined after its end", async () => {
    const { client } = await started([{ say: "Done." }]);
    const values = (await client.runs.wait("t1", "assistant", {
      input: said("go"),
      ifNotExists: "create",
    })) as unknown as Values;
    expect(contents(values)).toEqual(["go", "Done."]);
    const [run, ...none] = await client.runs.list("t1");
    expect(none).toEqual([]);
    expect(run).toMatchObject({ status: "success", thread_id: "t1", multitask_strategy: "enqueue" });
    expect(await client.runs.get("t1", run?.run_id ?? "")).toEqual(run);
    expect(contents((await client.runs.join("t1", run?.run_id ?? "")) as unknown as Values)).toEqual([
      "go",
      "Done.",
    ]);
    const again = await all(client.runs.joinStream("t1", run?.run_id ?? "", { lastEventId: "-1" }));
    expect(contents(lastValues(again))).toEqual(["go", "Done."]);
    await expect(client.runs.delete("t1", run?.run_id ?? "")).rejects.toThrow(
      "Runs are kept with their thread.",
    );
  });

  test("without a thread leaves none behind", async () => {
    const { client } = await started([{ say: "One." }, { say: "Two." }]);
    const values = (await client.runs.wait(null, "assistant", { input: said("go") })) as unknown as Values;
    expect(contents(values)).toEqual(["go", "One."]);
    const frames = await all(
      client.runs.stream(null, "assistant", { input: said("go"), streamMode: "values" }),
    );
    expect(contents(lastValues(frames))).toEqual(["go", "Two."]);
    await expect.poll(() => client.threads.count()).toBe(0);
  });

  test("takes the history of a thread that has none", async () => {
    let seen: unknown;
    const { client } = await started(({ messages }) => {
      seen = messages.map(({ role }) => role);
      return { say: "I see." };
    });
    await client.runs.wait(null, "assistant", {
      input: {
        messages: [
          { role: "user", content: "one" },
          { role: "assistant", content: "A", tool_calls: [{ id: "c1", name: "look", args: {} }] },
          { role: "tool", content: "found", tool_call_id: "c1" },
          { role: "user", content: "two" },
        ],
      },
    });
    expect(seen).toEqual(["user", "assistant", "tool", "user"]);
  });

  test("that fails says so in the provider's words", async () => {
    const fail = { code: "model_rejected", message: "The provider said no." };
    const { client } = await started([
      { say: "Half", fail },
      { say: "Half", fail },
    ]);
    const frames = await all(
      client.runs.stream("t1", "assistant", {
        input: said("go"),
        streamMode: ["values", "messages-tuple"],
        ifNotExists: "create",
      }),
    );
    expect(frames.find(({ event }) => event === "error")?.data).toMatchObject({
      error: "model_rejected",
      message: expect.stringContaining("The provider said no."),
    });
    expect(assembled(frames)).toEqual([]);
    await expect(
      client.runs.wait("t2", "assistant", { input: said("go"), ifNotExists: "create" }),
    ).rejects.toThrow("The provider said no.");
    expect(await client.threads.get("t1")).toMatchObject({ status: "error" });
  });

  test("that was sent twice under the same message id starts once", async () => {
    let asked = 0;
    const { client } = await started(() => ({ say: `Answer${++asked}` }));
    await client.threads.create({ threadId: "t1" });
    const send = () =>
      client.runs.wait("t1", "assistant", { input: said("go", "m1") }) as unknown as Promise<Values>;
    const answers = await Promise.all([send(), send()]);
    answers.push(await send());
    for (const values of answers) expect(contents(values)).toEqual(["go", "Answer1"]);
    expect(asked).toBe(1);
    expect(await client.runs.list("t1")).toHaveLength(1);
  });

  test("waits for the one before it, or is refused, as asked", async () => {
    const { client } = await started([{ say: "a b c d e f", delay_ms: 20 }, { say: "Two." }]);
    await client.threads.create({ threadId: "t1" });
    const first = await client.runs.create("t1", "assistant", { input: said("one", "m1") });
    await expect(
      client.runs.create("t1", "assistant", { input: said("no"), multitaskStrategy: "reject" }),
    ).rejects.toThrow(/409/);
    const second = await client.runs.create("t1", "assistant", { input: said("two", "m2") });
    const again = await client.runs.create("t1", "assistant", { input: said("two", "m2") });
    expect(again.run_id).toBe(second.run_id);
    expect(second.run_id).not.toBe(first.run_id);
    const values = (await client.runs.join("t1", second.run_id)) as unknown as Values;
    expect(contents(values)).toEqual(["one", "a b c d e f", "two", "Two."]);
    const frames = await all(client.runs.joinStream("t1", second.run_id));
    expect(contents(lastValues(frames))).toEqual(["one", "a b c d e f", "two", "Two."]);
  });

  test("is cancelled, and the thread takes the next message", async () => {
    const { client } = await started([{ say: "a ".repeat(1000), delay_ms: 20 }, { say: "Here again." }]);
    await client.threads.create({ threadId: "t1" });
    const { run_id } = await client.runs.create("t1", "assistant", { input: said("go") });
    const following = client.runs.joinStream("t1", run_id, { streamMode: "messages-tuple" });
    for await (const { event } of following) if (event === "messages") break;
    await client.runs.cancel("t1", run_id, true);
    expect(await client.runs.get("t1", run_id)).toMatchObject({ status: "interrupted" });
    await client.runs.cancel("t1", run_id);
    const values = (await client.runs.wait("t1", "assistant", {
      input: said("and now?"),
    })) as unknown as Values;
    expect(contents(values)?.at(-1)).toBe("Here again.");
  });

  test.each([
    ["continue", "success"],
    ["cancel", "interrupted"],
  ] as const)("that its client leaves with on_disconnect %s ends as %s", async (onDisconnect, status) => {
    const { client } = await started([{ say: "a ".repeat(40), delay_ms: 10 }]);
    await client.threads.create({ threadId: "t1" });
    const leaving = new AbortController();
    const stream = client.runs.stream("t1", "assistant", {
      input: said("go"),
      streamMode: "messages-tuple",
      signal: leaving.signal,
      onDisconnect,
    });
    for await (const { event } of stream) if (event === "messages") break;
    leaving.abort();
    await expect.poll(async () => (await client.runs.list("t1"))[0]?.status).toBe(status);
  });

  test.each([
    ["an unknown agent", { assistant_id: "unknown" }, 404, "There is no assistant"],
    ["a breakpoint", { interrupt_before: ["tools"] }, 422, "Breakpoints are not supported"],
    ["a webhook", { webhook: "https://example.com" }, 422, "webhook"],
    ["a goto", { command: { goto: "tools" } }, 422, "command.goto"],
    ["nothing to do", { input: null }, 422, "There is nothing to do"],
    ["an unknown checkpoint", { checkpoint_id: "00000009-x" }, 422, "it may have been rewritten"],
    ["an answer to nothing", { command: { resume: "yes" } }, 409, "Nothing in this thread waits"],
    [
      "a file behind a URL",
      {
        input: {
          messages: [
            { type: "human", content: [{ type: "image_url", image_url: "https://example.com/a.png" }] },
          ],
        },
      },
      422,
      "Only `data:` URLs",
    ],
  ])("is refused for %s", async (_, change, status, words) => {
    const { url, client } = await started([]);
    await client.threads.create({ threadId: "t1" });
    const body = { assistant_id: "assistant", input: said("hi"), ...change };
    const response = await fetch(`${url}/langgraph/threads/t1/runs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    expect([response.status, await response.json()]).toEqual([
      status,
      expect.objectContaining({ message: expect.stringContaining(words), error: expect.any(String) }),
    ]);
  });

  test("on an unknown thread is refused, unless it may create it", async () => {
    const { client } = await started([{ say: "ok" }]);
    await expect(client.runs.wait("t1", "assistant", { input: said("go") })).rejects.toThrow(/404/);
    await client.runs.wait("t1", "assistant", { input: said("go"), ifNotExists: "create" });
  });

  test("sends images, and the model sees them", async () => {
    let seen: unknown;
    const { client } = await started(({ messages }) => {
      seen = messages.at(-1)?.content;
      return { say: "A dot." };
    });
    const data = Buffer.from("not really an image").toString("base64");
    const image = { type: "image", source_type: "base64", mime_type: "image/png", data };
    await client.runs.wait(null, "assistant", {
      input: { messages: [{ type: "human", content: [{ type: "text", text: "What is it?" }, image] }] },
    });
    expect(seen).toEqual([
      { type: "text", text: "What is it?" },
      { type: "image", media_type: "image/png", data },
    ]);
  });
});

describe("an approval", () => {
  const asking: readonly Turn[] = [
    { say: "May I?", call: [{ tool: "execute", args: { command: "echo ran" }, id: "call_1" }] },
    { say: "All settled." },
  ];

  async function asked(script: readonly Turn[] | Script = asking) {
    const { url, client } = await started(script);
    const frames = await all(
      client.runs.stream("t1", "assistant", {
        input: said("run it"),
        streamMode: ["values", "updates"],
        ifNotExists: "create",
      }),
    );
    return { url, client, frames };
  }
  const resume = async (client: Client, value: unknown) =>
    (await client.runs.wait("t1", "assistant", { command: { resume: value } })) as unknown as Values;

  test("stands in the stream, the state, the thread and the search", async () => {
    const { url, frames } = await asked();
    const [interrupt, ...none] = lastValues(frames)?.__interrupt__ ?? [];
    expect(none).toEqual([]);
    expect(interrupt?.value).toEqual({
      action_requests: [{ name: "execute", args: { command: "echo ran" }, description: "May it?" }],
      review_configs: [
        { action_name: "execute", allowed_decisions: ["approve", "edit", "reject", "respond"] },
      ],
    });
    expect(frames.filter(({ event }) => event === "updates").at(-1)?.data).toEqual({
      __interrupt__: [interrupt],
    });
    const fresh = clientFor(url);
    expect(await fresh.threads.getState("t1")).toMatchObject({
      next: ["tools"],
      tasks: [{ interrupts: [interrupt] }],
      interrupts: [interrupt],
    });
    const [thread] = await fresh.threads.search({ status: "interrupted" });
    expect(Object.values(thread?.interrupts ?? {})).toEqual([[interrupt]]);
  });

  test.each([
    ["approved", { decisions: [{ type: "approve" }] }, /ran\n/],
    ["approved by a word", "yes", /ran\n/],
    [
      "edited",
      { decisions: [{ type: "edit", edited_action: { name: "execute", args: { command: "echo other" } } }] },
      /other\n/,
    ],
    ["denied", { decisions: [{ type: "reject", message: "Not today." }] }, /Not today\./],
    ["answered in the older form", [{ type: "response", args: "Use the other one." }], /Use the other one\./],
  ])("is %s: the model reads what came of it", async (_, value, result) => {
    let read = "";
    const { client } = await asked(({ messages }, call) => {
      read = JSON.stringify(messages.at(-1)).replaceAll("\\\\n", "\n").replaceAll("\\n", "\n");
      return asking[call];
    });
    const values = await resume(client, value);
    expect(values.__interrupt__).toBeUndefined();
    expect(toolIn(values)).toMatchObject({ tool_call_id: "call_1" });
    expect(contents(values)?.at(-1)).toBe("All settled.");
    expect(read).toMatch(result);
    await expect(resume(client, value)).rejects.toThrow(/409/);
  });

  test("that is left open is settled by goto __end__, and by a new message", async () => {
    const { client } = await asked([...asking.slice(0, 1), ...asking.slice(0, 1), { say: "Next." }]);
    const ended = await all(
      client.runs.stream("t1", "assistant", { command: { goto: "__end__" }, streamMode: "values" }),
    );
    expect(toolIn(lastValues(ended))).toMatchObject({ status: "error" });
    expect(await client.threads.get("t1")).toMatchObject({ status: "idle" });
    await client.runs.wait("t1", "assistant", { input: said("again") });
    await client.threads.updateState("t1", { values: null, asNode: "__end__" });
    expect(await client.threads.get("t1")).toMatchObject({ status: "idle" });
    const values = (await client.runs.wait("t1", "assistant", {
      input: said("something else"),
    })) as unknown as Values;
    expect(contents(values)?.at(-1)).toBe("Next.");
  });

  test("beside another may be answered alone: the rest is asked again", async () => {
    const both: Turn = {
      call: [
        { tool: "execute", args: { command: "echo one" }, id: "call_1" },
        { tool: "ask_user", args: { question: "Which?", options: ["red", "blue"] }, id: "call_2" },
      ],
    };
    const { client, frames } = await asked([both, { say: "Blue it is." }]);
    expect(lastValues(frames)?.__interrupt__).toHaveLength(1);
    const left = await resume(client, { decisions: [{ type: "approve" }] });
    expect(left.__interrupt__?.[0]?.value).toMatchObject({
      action_requests: [{ name: "ask_user", args: { options: ["red", "blue"] }, description: "Which?" }],
    });
    expect(contents(await resume(client, "Blue"))?.at(-1)).toBe("Blue it is.");
  });

  /** What the pages send, as their users meet the interrupt. */
  test.each([
    ["agent-chat-ui's form", (args: object) => ({ type: "edit", edited_action: { name: "ask_user", args } })],
    [
      "Agent Inbox's form",
      (args: object) => ({ type: "edit", args: { action: "ask_user", args } }) as object,
    ],
    ["Agent Inbox's response", () => ({ type: "reject", args: "Blue" })],
  ])("with approvals and a question is answered in one list of decisions, by %s", async (_, decision) => {
    const three: Turn = {
      call: [
        { tool: "execute", args: { command: "echo one" }, id: "call_1" },
        { tool: "ask_user", args: { question: "Which?", options: ["red", "blue"] }, id: "call_2" },
        { tool: "execute", args: { command: "echo two" }, id: "call_3" },
      ],
    };
    const { client, frames } = await asked([three, { say: "Settled." }]);
    const [interrupt] = lastValues(frames)?.__interrupt__ ?? [];
    const { action_requests = [] } = (interrupt?.value ?? {}) as {
      action_requests?: { name: string; args: object }[];
    };
    expect(action_requests.map(({ name }) => name)).toEqual(["execute", "ask_user", "execute"]);
    const filled = { ...action_requests[1]?.args, answer: "Blue" };
    const values = await resume(client, {
      decisions: [{ type: "approve" }, decision(filled), { type: "reject", message: "Not that." }],
    });
    expect(values.__interrupt__).toBeUndefined();
    const results = values.messages.flatMap((message) =>
      message.type === "tool" ? [`${message.status} ${message.content}`] : [],
    );
    expect(results.toSorted()).toEqual(["error ", "success blue", expect.stringMatching(/^success one\n/)]);
  });

  test("is not needed by a tool of the front end: its result reaches the model", async () => {
    let read = "";
    const { client } = await started(({ messages }, call) => {
      read = JSON.stringify(messages.at(-1));
      return call === 0 ? { call: [{ tool: "where", id: "call_1" }] } : { say: "Vienna, then." };
    });
    const where = { name: "where", description: "Where the user is.", parameters: { type: "object" } };
    const waiting = (await client.runs.wait("t1", "assistant", {
      input: said("where am I?"),
      config: { configurable: { tools: [where] } },
      ifNotExists: "create",
    })) as unknown as Values;
    const [interrupt] = waiting.__interrupt__ ?? [];
    expect(interrupt?.value).toEqual({ type: "tool", tool_call: { id: "call_1", name: "where", args: {} } });
    const values = await resume(client, { [interrupt?.id ?? ""]: { call_1: { city: "Vienna" } } });
    expect(contents(values)?.at(-1)).toBe("Vienna, then.");
    expect(read).toContain("Vienna");
  });
});

describe("a thread", () => {
  test("goes back to a checkpoint: another answer, other words, and the old ones are forgotten", async () => {
    const { client } = await started([{ say: "A." }, { say: "B." }, { say: "C." }, { say: "D." }]);
    const send = (content: string, more: object = {}) =>
      client.runs.wait("t1", "assistant", {
        input: said(content),
        ifNotExists: "create",
        ...more,
      }) as unknown as Promise<Values>;
    await send("one");
    await send("two");
    const history = await client.threads.getHistory<Values>("t1");
    expect(history.map(({ values }) => values.messages.length)).toEqual([4, 3, 2, 1, 0]);
    expect(history.map(({ parent_checkpoint }) => parent_checkpoint?.checkpoint_id)).toEqual([
      ...history.slice(1).map(({ checkpoint }) => checkpoint.checkpoint_id),
      undefined,
    ]);
    const steps = history.map(({ metadata }) => (metadata as { step: number }).step);
    expect(steps.toSorted((a, b) => b - a)).toEqual(steps);
    const [, afterTwo, beforeTwo] = history;
    const at = (state: typeof afterTwo) => ({ checkpoint: { ...state?.checkpoint } });
    expect(
      contents(
        (await client.threads.getState<Values>("t1", beforeTwo?.checkpoint.checkpoint_id ?? "")).values,
      ),
    ).toEqual(["one", "A."]);
    const again = (await client.runs.wait("t1", "assistant", {
      input: null,
      ...at(afterTwo),
    } as object)) as unknown as Values;
    expect(contents(again)).toEqual(["one", "A.", "two", "C."]);
    expect(contents(await send("other", at(beforeTwo)))).toEqual(["one", "A.", "other", "D."]);
    await expect(send("x", at(afterTwo))).rejects.toThrow("it may have been rewritten");
  });

  test("goes back to a checkpoint while a run is at work: that run ends, and is forgotten", async () => {
    const { client } = await started([{ say: "A." }, { say: "half never", delay_ms: 60_000 }, { say: "C." }]);
    await client.runs.wait("t1", "assistant", { input: said("one"), ifNotExists: "create" });
    const { checkpoint } = await client.threads.getState("t1");
    await client.runs.create("t1", "assistant", { input: said("two") });
    await client.runs.create("t1", "assistant", { input: said("three") });
    const instead = { input: said("other"), checkpoint };
    await expect(
      client.runs.wait("t1", "assistant", { ...instead, multitaskStrategy: "reject" }),
    ).rejects.toThrow(/409/);
    const values = await client.runs.wait("t1", "assistant", instead);
    expect(contents(values as unknown as Values)).toEqual(["one", "A.", "other", "C."]);
    expect((await client.runs.list("t1")).map(({ status }) => status)).toEqual([
      ...["success", "interrupted", "interrupted", "success"],
    ]);
  });

  test("takes other words under the id of a message in its place", async () => {
    const { client } = await started([{ say: "A." }, { say: "B." }]);
    await client.runs.wait("t1", "assistant", { input: said("one", "m1"), ifNotExists: "create" });
    const values = (await client.runs.wait("t1", "assistant", {
      input: said("other", "m1"),
    })) as unknown as Values;
    expect(contents(values)).toEqual(["other", "B."]);
  });

  test("is created, annotated, found, copied and deleted", async () => {
    const { client } = await started([{ say: "A." }, { say: "B." }]);
    const thread = await client.threads.create({
      threadId: "t1",
      graphId: "assistant",
      metadata: { topic: "cats" },
    });
    expect(thread).toMatchObject({
      thread_id: "t1",
      status: "idle",
      metadata: { topic: "cats", graph_id: "assistant" },
    });
    await expect(client.threads.create({ threadId: "t1" })).rejects.toThrow(/409/);
    await client.threads.create({ threadId: "t1", ifExists: "do_nothing" });
    await client.threads.update("t1", { metadata: { colour: "red" } });
    expect((await client.threads.get("t1")).metadata).toMatchObject({ topic: "cats", colour: "red" });
    await client.runs.wait("t1", "assistant", { input: said("hello") });
    await client.runs.wait("t1", "assistant", { input: said("again") });
    await client.threads.create({ threadId: "t2", metadata: { topic: "dogs" } });
    const found = async (query: object) =>
      (await client.threads.search(query)).map(({ thread_id }) => thread_id);
    expect(await found({ metadata: { topic: "cats" } })).toEqual(["t1"]);
    expect(await found({ metadata: { graph_id: "assistant" } })).toEqual(["t1"]);
    expect(await found({ metadata: { assistant_id: thread.metadata?.assistant_id } })).toEqual(["t1"]);
    expect(await found({ ids: ["t2", "t3"] })).toEqual(["t2"]);
    expect(await found({ sortBy: "thread_id", sortOrder: "asc" })).toEqual(["t1", "t2"]);
    expect(await found({ sortBy: "thread_id", sortOrder: "asc", offset: 1 })).toEqual(["t2"]);
    expect(await found({ status: "interrupted" })).toEqual([]);
    expect(await client.threads.count({ metadata: { topic: "dogs" } })).toBe(1);
    const [listed] = await client.threads.search<Values>({ ids: ["t1"] });
    expect(contents(listed?.values as Values)).toEqual(["hello", "A."]);
    const copy = await client.threads.copy("t1");
    expect(
      contents(
        (await client.threads.getState<Values>((copy as unknown as { thread_id: string }).thread_id)).values,
      ),
    ).toEqual(["hello", "A.", "again", "B."]);
    await client.threads.delete("t1");
    await expect(client.threads.get("t1")).rejects.toThrow(/404/);
  });

  test("takes files for its agent, and nothing else from outside", async () => {
    let read = "";
    const { client } = await started(({ messages }, call) => {
      read = JSON.stringify(messages.at(-1));
      return call === 0 ? { call: [{ tool: "read_file", args: { path: "note.md" } }] } : { say: "Read." };
    });
    await client.threads.create({ threadId: "t1", graphId: "assistant" });
    await client.threads.updateState("t1", {
      values: { files: { "note.md": "Buy milk.", "big.bin": "[20000 bytes]" } },
    });
    await client.runs.wait("t1", "assistant", { input: said("read it") });
    expect(read).toContain("Buy milk.");
    await expect(client.threads.updateState("t1", { values: { messages: [] } })).rejects.toThrow(
      "`messages` cannot be written from outside.",
    );
  });
});

test("a subagent's words come under its own name, apart from the agent's", async () => {
  const { client } = await started(HELPED.script, HELPED.agents);
  const options = {
    input: said("ask the helper"),
    streamMode: ["values" as const, "messages-tuple" as const],
    ifNotExists: "create" as const,
  };
  const frames = await all(client.runs.stream("t1", "assistant", { ...options, streamSubgraphs: true }));
  expect(
    assembled(frames)
      .map(({ text }) => text)
      .join("|"),
  ).toBe("|Red, says the helper.");
  const named = frames.filter(({ event }) => event === "messages|tools:call_1");
  expect(named.map(({ data }) => (data as [{ content: string }])[0].content).join("")).toContain("Looking.");
  const call = lastValues(frames)?.messages[1] as { tool_calls?: { args: object }[] };
  expect(call.tool_calls?.[0]?.args).toMatchObject({ subagent_type: "helper", description: "Which colour?" });
  const chunks = JSON.stringify(frames.filter(({ event }) => event === "messages"));
  expect(chunks).toContain('\\"subagent_type\\":\\"helper\\"');
  const without = await all(client.runs.stream("t2", "assistant", options));
  expect(without.filter(({ event }) => event.includes("|"))).toEqual([]);
});

test("a stream that is cut continues where it was: every word once, one run", async () => {
  const words = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");
  const { url, client: direct } = await started([{ say: words, delay_ms: 5 }]);
  await direct.threads.create({ threadId: "t1" });
  let cuts = 0;
  const asked: string[] = [];
  const client = new Client({
    apiUrl: `${url}/langgraph`,
    apiKey: "",
    callerOptions: {
      fetch: async (input: string | URL | Request, init?: RequestInit) => {
        asked.push(`${init?.method} ${new URL(String(input)).pathname}`);
        const response = await fetch(input, init);
        if (!response.body || !String(input).includes("/stream") || cuts >= 2) return response;
        cuts++;
        let frames = 0;
        const cut = new TransformStream<Uint8Array, Uint8Array>({
          transform(chunk, controller) {
            controller.enqueue(chunk);
            if (++frames === 8) controller.error(new TypeError("terminated"));
          },
        });
        return new Response(response.body.pipeThrough(cut), response);
      },
    },
  });
  const frames = await all(
    client.runs.stream("t1", "assistant", { input: said("go"), streamMode: ["values", "messages-tuple"] }),
  );
  expect(cuts).toBe(2);
  expect(assembled(frames).map(({ text }) => text)).toEqual([words]);
  expect(new Set(frames.map(({ id }) => id)).size).toBe(frames.length);
  expect(asked.filter((each) => each.startsWith("POST"))).toHaveLength(1);
  expect(await direct.runs.list("t1")).toHaveLength(1);
});

test("a stream of another run's frame is refused, not begun again", async () => {
  const { client } = await started([{ say: "A." }]);
  await client.runs.wait("t1", "assistant", { input: said("go"), ifNotExists: "create" });
  const [run] = await client.runs.list("t1");
  await expect(
    all(client.runs.joinStream("t1", run?.run_id ?? "", { lastEventId: "run_other:1-1.0" })),
  ).rejects.toThrow(/422/);
});

test("another user's thread is not found, and a thread of the same id is another one", async () => {
  const { url } = await startServer({
    script: [{ say: "Secret." }, { say: "Own." }],
    agents: AGENTS,
    config: { auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] }, backends: { allow_local: true } },
  });
  const [ada, bob] = ["ada", "bob"].map((user) =>
    clientFor(url, { "x-skein-tenant": "acme", "x-skein-user": user, "x-skein-scopes": "run read" }),
  );
  if (!ada || !bob) throw new Error("Two clients were made.");
  await ada.runs.wait("t1", "assistant", { input: said("mine", "m1"), ifNotExists: "create" });
  const [run] = await ada.runs.list("t1");
  const run_id = run?.run_id ?? "";
  for (const refused of [
    () => bob.threads.get("t1"),
    () => bob.threads.getState("t1"),
    () => bob.threads.getHistory("t1"),
    () => bob.threads.copy("t1"),
    () => bob.threads.delete("t1"),
    () => bob.threads.update("t1", { metadata: { a: 1 } }),
    () => bob.threads.updateState("t1", { values: { files: {} } }),
    () => bob.runs.list("t1"),
    () => bob.runs.get("t1", run_id),
    () => bob.runs.join("t1", run_id),
    () => bob.runs.cancel("t1", run_id),
    () => all(bob.runs.joinStream("t1", run_id)),
    () => bob.runs.wait("t1", "assistant", { input: said("hi") }),
  ])
    await expect(refused()).rejects.toThrow(/404/);
  expect(await bob.threads.search()).toEqual([]);
  const own = (await bob.runs.wait("t1", "assistant", {
    input: said("hi", "m1"),
    ifNotExists: "create",
  })) as unknown as Values;
  expect(contents(own)).toEqual(["hi", "Own."]);
  expect(contents((await ada.threads.getState<Values>("t1")).values)).toEqual(["mine", "Secret."]);
});
