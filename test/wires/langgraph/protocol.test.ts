// `client.threads.stream` of LangGraph's own SDK, against the whole server.

import { Client } from "@langchain/langgraph-sdk";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Script, Turn } from "../../../src/agent/models/scripted.ts";
import { cuttingProxy } from "../../support/cutting-proxy.ts";
import { gate, gated, WITH_GATE } from "../../support/gate.ts";
import { asUser, BEHIND_GATEWAY } from "../../support/gateway.ts";
import { postJson, runsOf, threadsOf } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";
import { HELPED } from "../../support/team.ts";
import { FILE_AGENTS } from "../agents.ts";

function threadOf(url: string, threadId: string, headers: Record<string, string> = {}) {
  const client = new Client({ apiUrl: `${url}/langgraph`, apiKey: null, defaultHeaders: headers });
  const thread = client.threads.stream(threadId, { assistantId: "assistant" });
  onTestFinished(() => thread.close());
  return { client, thread };
}

const said = (content: string, id?: string) => ({
  messages: [{ type: "human", content, ...(id ? { id } : {}) }],
});

async function started(script: readonly Turn[] | Script, agents = FILE_AGENTS) {
  const { url } = await startServer({ script, agents });
  return { url, ...threadOf(url, "t1") };
}

interface State {
  messages: { id: string; type: string; content: string }[];
  todos: object[];
  files: Record<string, string>;
}

const linesOf = ({ messages }: State) => messages.map(({ type, content }) => `${type}: ${content}`);

/** A command as bytes: what the SDK does not send. */
async function command(url: string, body: object, headers: Record<string, string> = {}) {
  const response = await postJson(`${url}/langgraph/threads/t1/commands`, body, headers);
  return { status: response.status, ...((await response.json()) as object) };
}

describe("client.threads.stream", () => {
  test("receives the agent's thoughts and text, piece by piece", async () => {
    const { thread } = await started([{ think: "Let me see.", say: "You said {{user}}." }]);
    const { run_id } = await thread.run.start({ input: said("hello") });
    expect(run_id).toMatch(/^run_/);
    for await (const message of thread.messages) {
      const pieces: string[] = [];
      for await (const piece of message.text) pieces.push(piece);
      expect(pieces.length).toBeGreaterThan(1);
      expect(pieces.join("")).toBe("You said hello.");
      expect(await message.reasoning).toBe("Let me see.");
      expect(await message.usage).toMatchObject({ output_tokens: expect.any(Number) });
    }
    const state = (await thread.output) as State;
    expect(linesOf(state)).toEqual(["human: hello", "ai: You said hello."]);
  });

  test("receives tools with their arguments and results", async () => {
    const { thread } = await started([
      { call: [{ tool: "write_file", args: { path: "a.txt", content: "all of it" } }] },
      { say: "Done." },
    ]);
    await thread.run.start({ input: said("work") });
    for await (const call of thread.toolCalls) {
      expect(call).toMatchObject({ name: "write_file", input: { path: "a.txt", content: "all of it" } });
      expect(JSON.stringify(await call.output)).toContain("a.txt");
      break;
    }
    expect(Object.values(((await thread.output) as State).files)).toEqual(["all of it"]);
  });

  test("finds a subagent, and receives its text separately", async () => {
    const { thread } = await started(HELPED.script, HELPED.agents);
    await thread.run.start({ input: said("ask the helper") });
    const found: object[] = [];
    for await (const subagent of thread.subagents) {
      found.push({ name: subagent.name, task: await subagent.taskInput });
      break;
    }
    expect(found).toEqual([{ name: "helper", task: "Which colour?" }]);
    expect(linesOf((await thread.output) as State).at(-1)).toBe("ai: Red, says the helper.");
  });

  test("is asked once, and the run continues with its answer, even on a stream that is opened later", async () => {
    const { url, thread } = await started([
      { say: "May I?", call: [{ tool: "execute", args: { command: "echo hi" } }] },
      { say: "It said hi." },
    ]);
    await thread.run.start({ input: said("run it") });
    await expect.poll(() => thread.interrupts.length).toBe(1);
    const { thread: again } = threadOf(url, "t1");
    await again.subscribe(["lifecycle", "input"]);
    await expect.poll(() => again.interrupts.length).toBe(1);
    const [asked] = again.interrupts;
    expect(asked?.interruptId).toBe(thread.interrupts[0]?.interruptId);
    const answer = {
      namespace: [],
      interrupt_id: asked?.interruptId ?? "",
      response: { decisions: [{ type: "approve" }] },
    };
    await again.input.respond(answer);
    expect(linesOf((await again.output) as State).at(-1)).toBe("ai: It said hi.");
    await expect(again.input.respond(answer)).rejects.toMatchObject({ code: "no_such_interrupt" });
  });

  test("adds a message for the running agent", async () => {
    const { tool, open } = gate();
    const { url } = await startServer({ script: gated, tools: [tool], agents: WITH_GATE });
    const { thread } = threadOf(url, "t1");
    await thread.run.start({ input: said("go") });
    await thread.input.inject({ namespace: [], message: { role: "user", content: "Be quick." } });
    open();
    expect(linesOf((await thread.output) as State).join()).toContain("human: Be quick.");
    expect(await runsOf(url, "t1")).toHaveLength(1);
    await expect(
      thread.input.inject({ namespace: [], message: { role: "user", content: "Too late." } }),
    ).rejects.toMatchObject({ code: "no_such_run" });
  });

  test("has all text of a run once, although its connections break", async () => {
    const words = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");
    const { url } = await startServer({ script: [{ say: words, delay_ms: 20 }], agents: FILE_AGENTS });
    const proxy = await cuttingProxy(Number(new URL(url).port));
    onTestFinished(() => proxy.close());
    const { thread } = threadOf(`http://127.0.0.1:${proxy.port}`, "t1");
    await thread.run.start({ input: said("go") });
    for await (const message of thread.messages) {
      let text = "";
      for await (const piece of message.text) {
        text += piece;
        if (piece.includes("word5") || piece.includes("word30")) proxy.cutAll();
      }
      expect(text).toBe(words);
    }
    expect(linesOf((await thread.output) as State)).toEqual(["human: go", `ai: ${words}`]);
    expect(await runsOf(url, "t1")).toHaveLength(1);
  });

  test("of a thread with a history reads the new run to its end, without old ones in its place", async () => {
    const { url, thread } = await started([{ say: "One." }, { say: "Two." }]);
    await thread.run.start({ input: said("first") });
    await thread.output;
    const { thread: again } = threadOf(url, "t1");
    await again.run.start({ input: said("second") });
    expect(linesOf((await again.output) as State).at(-1)).toBe("ai: Two.");
  });

  test("reads the state", async () => {
    const { thread } = await started([{ say: "Yes." }]);
    await expect(thread.state.get({ namespace: [] })).rejects.toMatchObject({ code: "no_such_thread" });
    await thread.run.start({ input: said("hello") });
    await thread.output;
    const { values, checkpoint } = await thread.state.get({ namespace: [], keys: ["messages"] });
    expect(Object.keys(values)).toEqual(["messages"]);
    expect(linesOf(values as unknown as State)).toEqual(["human: hello", "ai: Yes."]);
    expect(checkpoint?.id).toMatch(/^00000002-/);
  });
});

describe("a command", () => {
  test("that is repeated starts nothing, and returns the run that the first one started", async () => {
    const { url } = await startServer({
      script: [{ say: "word ".repeat(20), delay_ms: 10 }],
      agents: FILE_AGENTS,
    });
    const start = {
      id: 1,
      method: "run.start",
      params: { assistant_id: "assistant", input: said("go", "m1") },
    };
    const answers = [await command(url, start), await command(url, start)];
    expect(answers[0]).toMatchObject({
      status: 200,
      type: "success",
      id: 1,
      result: { run_id: expect.any(String) },
    });
    expect(answers[1]).toMatchObject({ result: (answers[0] as unknown as { result: object }).result });
    expect(await runsOf(url, "t1")).toHaveLength(1);
  });

  test.each([
    [
      "an unknown agent",
      "run.start",
      { assistant_id: "missing", input: said("go") },
      "invalid_argument",
      "missing",
    ],
    [
      "a breakpoint",
      "run.start",
      { assistant_id: "assistant", input: said("go"), interrupt_before: ["x"] },
      "invalid_argument",
      "Breakpoints",
    ],
    [
      "nothing to do",
      "run.start",
      { assistant_id: "assistant", input: null },
      "invalid_argument",
      "nothing to run",
    ],
    ["no agent", "run.start", { input: said("go") }, "invalid_argument", "assistant_id"],
    [
      "an interrupt that is not open",
      "input.respond",
      { namespace: [], interrupt_id: "x", response: "yes" },
      "no_such_interrupt",
      "not open",
    ],
    [
      "a message for no run",
      "input.inject",
      { namespace: [], message: { role: "user", content: "x" } },
      "no_such_run",
      "no active run",
    ],
    ["an unknown thread", "state.get", { namespace: [] }, "no_such_thread", "t1"],
    ["what the protocol has and this server does not", "state.fork", {}, "not_supported", "state.fork"],
    ["what the protocol does not have", "toString", {}, "unknown_command", "toString"],
  ])("with %s is answered with the reason", async (_, method, params, error, words) => {
    const { url } = await startServer({ agents: FILE_AGENTS });
    const answer = await command(url, { id: 7, method, params });
    expect(answer).toMatchObject({
      status: 200,
      type: "error",
      id: 7,
      error,
      message: expect.stringContaining(words),
    });
    expect(await threadsOf(url)).toEqual([]);
  });

  test("on another user's thread finds nothing, and creates a new thread", async () => {
    const { url } = await startServer({
      config: BEHIND_GATEWAY,
      script: [
        { say: "May I?", call: [{ tool: "execute", args: { command: "echo hi" } }] },
        { say: "Mine." },
      ],
      agents: FILE_AGENTS,
    });
    const [ada, bob] = [asUser("ada"), asUser("bob")];
    const { thread } = threadOf(url, "t1", ada);
    await thread.run.start({ input: said("secret") });
    await expect.poll(() => thread.interrupts.length).toBe(1);
    const { interruptId: interrupt_id } = thread.interrupts[0] ?? { interruptId: "" };
    for (const [method, params, error] of [
      ["state.get", { namespace: [] }, "no_such_thread"],
      ["input.respond", { namespace: [], interrupt_id, response: "yes" }, "no_such_interrupt"],
      ["input.inject", { namespace: [], message: { role: "user", content: "x" } }, "no_such_run"],
    ] as const) {
      const answer = await command(url, { id: 1, method, params }, bob);
      expect(answer).toMatchObject({ type: "error", error, meta: { applied_through_seq: 0 } });
      expect(JSON.stringify(answer)).not.toContain("secret");
    }
    const { thread: own } = threadOf(url, "t1", bob);
    await own.run.start({ input: said("hello") });
    expect(linesOf((await own.output) as State)).toEqual(["human: hello", "ai: Mine."]);
  });
});
