// Assistants and threads, as LangGraph's own SDK finds, changes and rewinds them.

import { describe, expect, test } from "vitest";
import { asUser, BEHIND_GATEWAY } from "../../support/gateway.ts";
import { postJson } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";
import { FILE_AGENTS } from "../agents.ts";
import { all, clientFor, contents, said, started, type Values } from "./client.ts";

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

  test("that do not exist, and changes to them, are refused with a readable error", async () => {
    const { client } = await started([]);
    await expect(client.assistants.get("none")).rejects.toThrow(/404.*There is no assistant/s);
    await expect(client.assistants.create({ graphId: "assistant" })).rejects.toThrow(
      "Only the operator can configure agents.",
    );
    await expect(client.store.searchItems(["notes"])).rejects.toThrow("not supported");
  });
});

describe("a thread", () => {
  test("can be rewound to a checkpoint: another answer and other text replace the old ones", async () => {
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
    const before = { configurable: { ...afterTwo?.checkpoint } };
    expect(await client.threads.getHistory("t1", { before, limit: 1 })).toEqual([beforeTwo]);
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
    await expect(send("x", at(afterTwo))).rejects.toThrow("thread may have been rewritten");
  });

  test("can be rewound to a checkpoint during a run, which ends and is removed", async () => {
    const { client } = await started(({ messages }) => {
      const asked = messages.at(-1)?.content;
      if (asked === "two") return { say: "half never", delay_ms: 600_000 };
      return { say: asked === "one" ? "A." : "C." };
    });
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

  test("accepts other text under a message's id as a replacement", async () => {
    const { client } = await started([{ say: "A." }, { say: "B." }]);
    await client.runs.wait("t1", "assistant", { input: said("one", "m1"), ifNotExists: "create" });
    const values = (await client.runs.wait("t1", "assistant", {
      input: said("other", "m1"),
    })) as unknown as Values;
    expect(contents(values)).toEqual(["other", "B."]);
  });

  test("can be created, annotated, found, copied and deleted", async () => {
    const { url, client } = await started([{ say: "A." }, { say: "B." }]);
    const thread = await client.threads.create({
      threadId: "t1",
      graphId: "assistant",
      metadata: { topic: "cats", colour: "blue", list: [1] },
    });
    expect(thread.metadata).not.toHaveProperty("list");
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
    expect(await found({ sortBy: "thread_id" })).toEqual(["t2", "t1"]);
    const pages = [0, 1].map((offset) => postJson(`${url}/langgraph/threads/search`, { limit: 1, offset }));
    const headers = (await Promise.all(pages)).map((page) => page.headers);
    expect(headers.map((each) => each.get("x-pagination-total"))).toEqual(["2", "2"]);
    expect(headers.map((each) => each.get("x-pagination-next"))).toEqual(["1", null]);
    expect(await found({ status: "interrupted" })).toEqual([]);
    expect(await client.threads.count({ metadata: { topic: "dogs" } })).toBe(1);
    const [listed] = await client.threads.search<Values>({ ids: ["t1"] });
    expect(contents(listed?.values as Values)).toEqual(["hello", "A."]);
    const selecting = async (...select: string[]) =>
      (await postJson(`${url}/langgraph/threads/search`, { ids: ["t1"], select })).json();
    expect(await selecting("values.messages")).toMatchObject([{ values: { messages: [{}, {}] } }]);
    expect(await selecting("thread_id")).toMatchObject([{ values: null }]);
    const copy = await client.threads.copy("t1");
    expect(
      contents(
        (await client.threads.getState<Values>((copy as unknown as { thread_id: string }).thread_id)).values,
      ),
    ).toEqual(["hello", "A.", "again", "B."]);
    await client.threads.delete("t1");
    await expect(client.threads.get("t1")).rejects.toThrow(/404/);
  });

  test("is counted and found among more than a page of threads", async () => {
    const { url, client } = await started([]);
    const create = (_: unknown, at: number) =>
      postJson(`${url}/langgraph/threads`, { thread_id: `t${at}`, metadata: { at } });
    await Promise.all(Array.from({ length: 105 }, create));
    expect(await client.threads.count()).toBe(105);
    expect(await client.threads.search()).toHaveLength(10);
    expect(await client.threads.search({ metadata: { at: 0 } })).toMatchObject([{ thread_id: "t0" }]);
  });

  test("is listed without its values if those before it take 16 MiB", async () => {
    const { client } = await started([]);
    const content = "x".repeat(1_000_000);
    const create = async (_: unknown, at: number) => {
      await client.threads.create({ threadId: `t${at}` });
      await client.threads.updateState(`t${at}`, { values: { messages: [{ type: "human", content }] } });
    };
    await Promise.all(Array.from({ length: 18 }, create));
    const found = await client.threads.search({ limit: 18 });
    expect(found.map(({ values }) => values === null)).toEqual([...Array(17).fill(false), true]);
  });

  test("cannot be searched by more keys than it can have, because each of the user's threads would be compared", async () => {
    const { client } = await started([]);
    const keys = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1]));
    expect(await client.threads.search({ metadata: keys(34) })).toEqual([]);
    for (const metadata of [keys(35), keys(10_000)]) {
      await expect(client.threads.search({ metadata })).rejects.toThrow(/422.*must have at most 34 keys/s);
      await expect(client.threads.count({ metadata })).rejects.toThrow(/422.*must have at most 34 keys/s);
      await expect(client.assistants.search({ metadata })).rejects.toThrow(/422.*must have at most 32 keys/s);
    }
  });

  test("accepts files for its agent, and nothing else from outside", async () => {
    let read = "";
    const call = ["note.md", "big.bin"].map((path) => ({ tool: "read_file", args: { path } }));
    const { client } = await started(({ messages }) => {
      read = JSON.stringify(messages.slice(-2));
      return messages.at(-1)?.role === "user" ? { call } : { say: "Read." };
    });
    await client.threads.create({ threadId: "t1", graphId: "assistant" });
    await client.threads.updateState("t1", {
      values: { files: { "note.md": "Buy milk.", "big.bin": "[20000 bytes]" } },
    });
    await client.runs.wait("t1", "assistant", { input: said("read it") });
    expect(read).toContain("Buy milk.");
    expect(read).not.toContain("20000 bytes");
    await client.threads.updateState("t1", { values: { files: { "/note.md": null } } });
    await client.runs.wait("t1", "assistant", { input: said("read it again") });
    expect(read).not.toContain("Buy milk.");
    await expect(client.threads.updateState("t1", { values: { todos: [] } })).rejects.toThrow(
      "clients cannot write `todos`",
    );
  });

  test("accepts messages without running its agent: new ones, replacements and removals", async () => {
    let read: unknown[] = [];
    const { client } = await started(({ messages }) => {
      read = messages.map(({ role, content }) => [role, content]);
      return { say: "Well." };
    });
    await client.threads.create({ threadId: "t1", graphId: "assistant" });
    const write = (messages: unknown, more: object = {}) =>
      client.threads.updateState("t1", { values: { messages }, ...more });
    const held = async () => (await client.threads.getState<Values>("t1")).values.messages;
    await write([
      { type: "human", id: "m1", content: "one" },
      { type: "ai", id: "m2", content: "", tool_calls: [{ id: "c1", name: "where", args: {} }] },
    ]);
    await write({ type: "tool", id: "m3", tool_call_id: "c1", content: "Graz" });
    await write([["human", "two"], "three"]);
    await write([
      { type: "human", id: "m1", content: "other" },
      { type: "remove", id: (await held()).at(-1)?.id },
    ]);
    expect(contents({ messages: await held() })).toEqual(["other", "", "Graz", "two"]);
    expect((await held()).slice(0, 3).map(({ id }) => id)).toEqual(["m1", "m2", "m3"]);
    await client.runs.wait("t1", "assistant", { input: said("four") });
    expect(read).toEqual([
      ...[
        ["user", "other"],
        ["assistant", ""],
        ["tool", "Graz"],
        ["user", "two"],
        ["user", "four"],
      ],
    ]);
    await expect(write({ type: "remove", id: "none" })).rejects.toThrow("no message `none`");
    await expect(write({ type: "tool", tool_call_id: "c9", content: "x" })).rejects.toThrow("no call `c9`");
    await expect(write("x", { checkpointId: "00000001-none" })).rejects.toThrow("rewritten");
    const history = await client.threads.getHistory<Values>("t1");
    const place = history.find(({ values }) => values.messages.length === 1)?.checkpoint.checkpoint_id;
    await write([{ type: "ai", content: "Hello." }], { checkpointId: place });
    expect(contents({ messages: await held() })).toEqual(["other", "Hello."]);
    await write([
      { type: "remove", id: "__remove_all__" },
      { type: "human", content: "afresh" },
    ]);
    expect(contents({ messages: await held() })).toEqual(["afresh"]);
  });

  test("can be created with the messages of its supersteps", async () => {
    const { client } = await started([]);
    const create = (values: Record<string, unknown>) =>
      client.threads.create({
        ...{ threadId: "t1", graphId: "assistant" },
        supersteps: [
          { updates: [{ values: { messages: ["one"] }, asNode: "__input__" }] },
          { updates: [{ values, asNode: "agent" }] },
        ],
      });
    await expect(create({ todos: [] })).rejects.toThrow("clients cannot write `todos`");
    await create({ messages: { type: "ai", content: "A." } });
    const { values } = await client.threads.getState<Values>("t1");
    expect(contents(values)).toEqual(["one", "A."]);
  });

  test("that waits for an answer accepts no messages until it has it", async () => {
    const { client } = await started([{ call: [{ tool: "execute", args: { command: "true" } }] }]);
    await client.runs.wait("t1", "assistant", { input: said("go"), ifNotExists: "create" });
    await expect(client.threads.updateState("t1", { values: { messages: "x" } })).rejects.toThrow(
      "`execute`",
    );
    await client.threads.updateState("t1", { values: null, asNode: "__end__" });
    await client.threads.updateState("t1", { values: { messages: "x" } });
    expect((await client.threads.getState<Values>("t1")).values.messages.at(-1)).toMatchObject({
      ...{ type: "human", content: "x" },
    });
  });
});

test("of another user is not found, and a thread with the same id is a different one", async () => {
  const { url } = await startServer({
    script: [{ say: "Secret." }, { say: "Own." }],
    agents: FILE_AGENTS,
    config: BEHIND_GATEWAY,
  });
  const [ada, bob] = ["ada", "bob"].map((user) => clientFor(url, asUser(user, "run read")));
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
