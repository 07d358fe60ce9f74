// Runs, as LangGraph's own SDK starts, reads, waits for and stops them.

import { describe, expect, test } from "vitest";
import { gate, gated, WITH_GATE } from "../../support/gate.ts";
import { postJson } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";
import { HELPED } from "../../support/team.ts";
import {
  all,
  assembled,
  clientFor,
  contents,
  lastValues,
  said,
  started,
  toolIn,
  type Values,
} from "./client.ts";

describe("a run", () => {
  test("streams the agent's thoughts and text, and the thread then has the same", async () => {
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

  test("shows tools with their results, todos and files, and nothing internal", async () => {
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

  test("in mode messages has each message so far, and finally the complete one", async () => {
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

  test("can be awaited, and joined after its end", async () => {
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
      "Runs cannot be changed or deleted on their own. Delete their thread instead.",
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

  test("without a thread keeps its new thread on request, and works in the background", async () => {
    const { client } = await started(({ messages }) => ({ say: `${messages.length}.` }));
    const input = said("go");
    const kept = await client.runs.create(null, "assistant", { input, onCompletion: "continue" });
    const values = (await client.runs.join(kept.thread_id, kept.run_id)) as unknown as Values;
    expect(contents(values)).toEqual(["go", "1."]);
    const left = await client.runs.create(null, "assistant", { input });
    expect(contents((await client.runs.join(left.thread_id, left.run_id)) as unknown as Values)).toHaveLength(
      2,
    );
    await client.runs.wait(null, "assistant", { input });
    const ids = async () => (await client.threads.search()).map(({ thread_id }) => thread_id).sort();
    await expect.poll(ids).toEqual([kept.thread_id, left.thread_id].sort());
  });

  test("without a thread and without a reader is deleted after a while", async () => {
    const { client } = await started([{ say: "One." }, { say: "Two." }], undefined, {
      retention: { temporary_threads: "0.2s" },
    });
    const input = said("go");
    const kept = await client.runs.create(null, "assistant", { input, onCompletion: "continue" });
    await client.runs.create(null, "assistant", { input });
    const ids = async () => (await client.threads.search()).map(({ thread_id }) => thread_id);
    await expect.poll(ids).toEqual([kept.thread_id]);
  });

  test("in a batch is started with the others, each on its own thread", async () => {
    const { url, client } = await started(() => ({ say: "Done." }));
    const payload = (text: string) => ({ assistantId: "assistant", input: said(text), metadata: { text } });
    const runs = await client.runs.createBatch(["one", "two", "three"].map(payload));
    expect(runs.map(({ metadata }) => (metadata as { text: string }).text)).toEqual(["one", "two", "three"]);
    for (const { thread_id, run_id } of runs)
      expect(contents((await client.runs.join(thread_id, run_id)) as unknown as Values)?.[1]).toBe("Done.");
    const twice = [1, 2].map(async () => {
      const body = ["one", "two"].map((text) => ({
        assistant_id: "assistant",
        input: said(text),
        on_completion: "keep",
      }));
      const response = await postJson(`${url}/langgraph/runs/batch`, body, { "idempotency-key": "k" });
      return ((await response.json()) as { run_id: string }[]).map(({ run_id }) => run_id);
    });
    const [first = [], again] = await Promise.all(twice);
    expect(again).toEqual(first);
    expect(new Set(first).size).toBe(2);
    const [kept] = await client.runs.createBatch([{ ...payload("kept"), onCompletion: "continue" }]);
    expect(await client.threads.get(kept?.thread_id ?? "")).toMatchObject({ thread_id: kept?.thread_id });
    await expect(
      client.runs.createBatch([payload("one"), { assistantId: "unknown", input: said("two") }]),
    ).rejects.toThrow(/There is no assistant/);
    expect(await client.threads.count()).toBe(6);
  });

  test("in a batch returns its refusal in its place", async () => {
    const { client } = await started(() => ({ say: "Done." }), undefined, {
      limits: { temporary_threads: 1 },
    });
    const payload = { assistantId: "assistant", input: said("go") };
    expect(await client.runs.createBatch([payload, payload])).toMatchObject([
      { status: expect.any(String) },
      { error: "limit_exceeded", message: expect.stringContaining("keep_thread") },
    ]);
  });

  test("accepts the history of a thread that has none", async () => {
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
          ["human", "two"],
        ],
      },
    });
    expect(seen).toEqual(["user", "assistant", "tool", "user"]);
  });

  test("that fails returns the provider's error", async () => {
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

  test("that was sent twice with the same message id starts once", async () => {
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

  test("waits for the previous one, or is refused, as requested", async () => {
    const { tool, open } = gate();
    const script = [...gated, { say: "Two." }];
    const client = clientFor((await startServer({ script, tools: [tool], agents: WITH_GATE })).url);
    await client.threads.create({ threadId: "t1" });
    const first = await client.runs.create("t1", "assistant", { input: said("one", "m1") });
    await expect(
      client.runs.create("t1", "assistant", { input: said("no"), multitaskStrategy: "reject" }),
    ).rejects.toThrow(/409/);
    const second = await client.runs.create("t1", "assistant", { input: said("two", "m2") });
    const again = await client.runs.create("t1", "assistant", { input: said("two", "m2") });
    expect(again.run_id).toBe(second.run_id);
    expect(second.run_id).not.toBe(first.run_id);
    open();
    const values = (await client.runs.join("t1", second.run_id)) as unknown as Values;
    const whole = ["one", "Wait.", "open", "Through.", "two", "Two."];
    expect(contents(values)).toEqual(whole);
    const frames = await all(client.runs.joinStream("t1", second.run_id));
    expect(contents(lastValues(frames))).toEqual(whole);
  });

  test("can be cancelled with others of its thread, by state or by id", async () => {
    const { tool, open, entered } = gate();
    const { url } = await startServer({ script: gated, tools: [tool], agents: WITH_GATE });
    const client = clientFor(url);
    await client.threads.create({ threadId: "t1" });
    const ids: string[] = [];
    for (const text of ["one", "two", "three"])
      ids.unshift((await client.runs.create("t1", "assistant", { input: said(text) })).run_id);
    await entered;
    const cancel = (more: object) => postJson(`${url}/langgraph/runs/cancel`, { thread_id: "t1", ...more });
    const statuses = async () => (await client.runs.list("t1")).map(({ status }) => status);
    await cancel({ run_ids: ids.slice(0, 1) });
    await expect.poll(statuses).toEqual(["interrupted", "pending", "running"]);
    await cancel({ status: "pending" });
    await expect.poll(statuses).toEqual(["interrupted", "interrupted", "running"]);
    expect(await client.runs.list("t1", { status: "interrupted" })).toHaveLength(2);
    expect(await client.runs.list("t1", { limit: 1, offset: 1 })).toMatchObject([{ run_id: ids[1] }]);
    await cancel({});
    open();
    await expect.poll(statuses).toEqual(["interrupted", "interrupted", "interrupted"]);
  });

  test("is listed and cancelled behind more than a page of runs", async () => {
    const { tool, open, entered } = gate();
    const { url } = await startServer({
      ...{ script: gated, tools: [tool], agents: WITH_GATE, config: { limits: { queued_runs: 200 } } },
    });
    const client = clientFor(url);
    await client.threads.create({ threadId: "t1" });
    const first = await client.runs.create("t1", "assistant", { input: said("one") });
    await entered;
    await Promise.all(
      Array.from({ length: 200 }, () => client.runs.create("t1", "assistant", { input: said("next") })),
    );
    expect(await client.runs.list("t1", { offset: 200 })).toMatchObject([{ run_id: first.run_id }]);
    await postJson(`${url}/langgraph/runs/cancel`, { thread_id: "t1" });
    open();
    const status = async () => (await client.runs.get("t1", first.run_id)).status;
    await expect.poll(status).toBe("interrupted");
  });

  test("can be cancelled, and the thread accepts the next message", async () => {
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
    ["continue", "success", 40],
    ["cancel", "interrupted", 4000],
  ] as const)(
    "with on_disconnect %s ends as %s if its client leaves",
    async (onDisconnect, status, words) => {
      const { client } = await started([{ say: "a ".repeat(words), delay_ms: 10 }]);
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
    },
  );

  test.each([
    ["an unknown agent", { assistant_id: "unknown" }, 404, "There is no assistant"],
    ["a breakpoint", { interrupt_before: ["tools"] }, 422, "Breakpoints are not supported"],
    ["a webhook", { webhook: "https://example.com" }, 422, "webhook"],
    ["a goto", { command: { goto: "tools" } }, 422, "command.goto"],
    ["nothing to do", { input: null }, 422, "nothing to run"],
    ["an unknown checkpoint", { checkpoint_id: "00000009-x" }, 422, "thread may have been rewritten"],
    ["an answer to nothing", { command: { resume: "yes" } }, 409, "This thread has no open interrupt"],
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
    const response = await postJson(`${url}/langgraph/threads/t1/runs`, body);
    expect([response.status, await response.json()]).toEqual([
      status,
      expect.objectContaining({ message: expect.stringContaining(words), error: expect.any(String) }),
    ]);
  });

  test("on an unknown thread is refused unless it may create it", async () => {
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

test("a subagent's text arrives under its own name, separate from the agent's", async () => {
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
