import { getEventListeners } from "node:events";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Model } from "../../../src/agent/core/model.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import {
  createAgent,
  createQuotas,
  createRuntime,
  QuotaConfig,
  type Span,
  type TaskBoard,
} from "../../../src/index.ts";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import { workspace } from "../../agent/hooks/workspace.ts";
import { names } from "../../support/backend.ts";
import { gate, gated } from "../../support/gate.ts";
import { agentWith, collect, runtimeWith } from "../../support/library.ts";
import { temporaryFolder } from "../../support/server.ts";
import { completing, delegating } from "../../support/team.ts";

const echo = agentWith(({ messages }) => ({ say: `heard ${messages.length}` }), { name: "echo" });

const thrown = new TypeError("cannot read the weights");
const broken: Model = {
  name: "own:m",
  stream() {
    throw thrown;
  },
};

/** An agent that stays at work until the test lets it go. */
function atGate() {
  const { tool, open, entered } = gate();
  return { open, entered, agent: agentWith(gated, { name: "gated", tools: [tool] }) };
}

describe("a runtime", () => {
  test("runs several agents in parallel and lists the active ones", async () => {
    const runtime = runtimeWith({ agents: [echo] });
    const { agent, open, entered } = atGate();
    const one = runtime.spawn(agent, { input: "go" });
    const two = runtime.spawn("echo", { input: "hello" });
    expect((await two.result).text).toBe("heard 1");
    await entered;
    expect(await one.phase()).toEqual({ name: "executing_tool", of: ["gate"] });
    expect(await two.phase()).toBeUndefined();
    expect(runtime.list().map(({ id }) => id)).toEqual([one.id]);
    expect(await runtime.isRunning(one.id)).toBe(true);
    expect(await runtime.isRunning(two.id)).toBe(false);
    open();
    expect((await one.result).text).toBe("Through.");
    expect(runtime.list()).toEqual([]);
  });

  test("returns a model's thrown error to its author, in the result and in the log", async () => {
    const lines: [object, string][] = [];
    const error = (details: object, message: string) => void lines.push([details, message]);
    const agent = createAgent({ name: "broken", model: broken });
    const runtime = runtimeWith({ logger: { info() {}, warn() {}, error } });
    const handle = runtime.spawn(agent, { input: "hello", tenant: "acme", user: "ada" });
    const result = await handle.result;
    expect(result).toMatchObject({ status: "error", error: { code: "internal" } });
    expect(result.error?.cause).toBe(thrown);
    expect((await (await runtime.get(handle.id, handle.owner))?.result)?.error?.cause).toBe(thrown);
    const ids = { tenant: "acme", user: "ada", thread_id: handle.id, run_id: result.run.id, agent: "broken" };
    const details = { ...ids, code: "internal", err: expect.objectContaining({ cause: thrown }) };
    await expect.poll(() => lines).toEqual([[expect.objectContaining(details), "run failed"]]);
  });

  test("returns a hook's thrown error to its author, under the hook's name", async () => {
    const hook = () => ({
      name: "mine",
      wrapModelCall(): never {
        throw thrown;
      },
    });
    const agent = agentWith([{ say: "hi" }], { name: "hooked", hooks: [hook] });
    const runtime = runtimeWith({ logger: { info() {}, warn() {}, error() {} } });
    const { error } = await runtime.spawn(agent, { input: "hello" }).result;
    expect(error).toMatchObject({ code: "hook_failed", message: expect.stringContaining("`mine`") });
    expect(error?.cause).toBe(thrown);
  });

  test("finds a thread again by its id, and only for its owner", async () => {
    const runtime = runtimeWith();
    const { id } = runtime.spawn(echo, { input: "hello", user: "ada" });
    await runtime.list()[0]?.result;
    const found = await runtime.get(id, { user: "ada" });
    expect((await found?.result)?.text).toBe("heard 1");
    expect(await found?.status()).toBe("success");
    expect(await runtime.get(id, { user: "bob" })).toBeUndefined();
  });

  test("refuses an id with a special meaning in a path, a key or a file name", () => {
    const runtime = runtimeWith();
    for (const thread of ["../x", "a b", "", "a:b"])
      expect(() => runtime.spawn(echo, { thread, input: "hello" })).toThrow(/thread: must be 1 to 128/);
  });

  test("that is closed rejects calls on its handles, and causes no unhandled rejection", async () => {
    const runtime = runtimeWith();
    await runtime.close();
    const handle = runtime.spawn(echo);
    // Long enough for an unhandled rejection to be reported.
    await new Promise((resolve) => setImmediate(resolve));
    await expect(handle.send("hello")).rejects.toMatchObject({ code: "unavailable" });
  });

  test("shuts down one agent, and all", async () => {
    const runtime = runtimeWith();
    const gates = [atGate(), atGate(), atGate()];
    const handles = gates.map(({ agent }, index) =>
      runtime.spawn(agent.with({ name: `gated${index}` }), { input: "go" }),
    );
    await Promise.all(gates.map(({ entered }) => entered));
    await runtime.shutdown(handles[0]?.id ?? "");
    expect(await handles[0]?.status()).toBe("cancelled");
    expect(await handles[1]?.status()).toBe("running");
    await runtime.shutdownAll();
    expect(await Promise.all(handles.map((handle) => handle.status()))).toEqual(Array(3).fill("cancelled"));
    expect(runtime.list()).toEqual([]);
  });

  test("executes at most `max_runs` at a time, and shuts down a run that waits", async () => {
    const runtime = runtimeWith({ max_runs: 1, agents: [echo] });
    const { agent, open, entered } = atGate();
    runtime.spawn(agent, { input: "go" });
    await entered;
    const [first, second] = [1, 2].map(() => runtime.spawn("echo", { input: "hello" }));
    expect(await second?.status()).toBe("pending");
    await runtime.shutdown(first?.id ?? "");
    expect([await first?.status(), await second?.status()]).toEqual(["cancelled", "pending"]);
    open();
    expect((await second?.result)?.text).toBe("heard 1");
  });

  test("that is closed ends active runs, and starts nothing more", async () => {
    const { agent, entered } = atGate();
    let handle: ReturnType<ReturnType<typeof createRuntime>["spawn"]>;
    let runtime: ReturnType<typeof createRuntime>;
    {
      await using closing = createRuntime({ grace_ms: 0 });
      runtime = closing;
      handle = closing.spawn(agent, { input: "go" });
      await entered;
    }
    expect(await handle.result).toMatchObject({ status: "error", error: { code: "shutting_down" } });
    await expect(runtime.spawn(agent, { input: "again" }).result).rejects.toMatchObject({
      code: "shutting_down",
    });
  });

  test("does not close the stores that it was given, and another one finds the thread there", async () => {
    const stores = createMemoryStores();
    onTestFinished(() => stores.close());
    const first = createRuntime({ stores });
    const handle = first.spawn(echo, { input: "hello" });
    await handle.result;
    await first.close();
    const again = runtimeWith({ stores }).spawn(echo, { input: "and again", thread: handle.id });
    expect((await again.result).text).toBe("heard 3");
  });

  test("applies the quotas, the recorder, the task board and the folder that it was given", async () => {
    const [stores, data_dir] = [createMemoryStores(), await temporaryFolder()];
    onTestFinished(() => stores.close());
    const config = QuotaConfig.parse({ user: { threads: 2 } });
    const quotas = createQuotas(stores.quotas, config, { threadMs: 3_600_000 });
    const seen: string[] = [];
    const span: Span = { set: () => span, recordEvent: () => span, end() {} };
    const startSpan = (name: string) => {
      seen.push(name);
      return span;
    };
    const tasks: TaskBoard = {
      claim: async ({ id }) => void seen.push(`claim ${id}`),
      settle: async ({ id }, _agent, status) => void seen.push(`${status} ${id}`),
    };
    const recorder = { startSpan, recordEvent() {} };
    const runtime = runtimeWith({ stores, quotas, recorder, tasks, data_dir });
    const backend = { type: "local" };
    const coder = agentWith([completing("Done.")], { name: "coder", description: "Writes code" });
    const delegated = delegating({ agent: "coder", task: "Write it.", task_id: "t1" });
    const write = { call: [{ tool: "write_file", args: { path: "a", content: "" } }] };
    const script = [write, delegated, { say: "Done." }];
    const lead = agentWith(script, { name: "lead", backend, subagents: [coder] });
    expect((await runtime.spawn(lead, { input: "go" }).result).status).toBe("success");
    expect(seen).toEqual(expect.arrayContaining(["llm.call", "tool.call", "claim t1", "completed t1"]));
    expect(await readdir(join(data_dir, "workspaces"))).toHaveLength(1);
    await expect(runtime.spawn(lead, { input: "go" }).result).rejects.toMatchObject({
      code: "limit_exceeded",
    });
  });

  test("refuses a second agent with the same name, and replaces the first on request", async () => {
    const runtime = runtimeWith({ agents: [echo] });
    const other = agentWith(() => ({ say: "other" }), { name: "echo" });
    expect(() => runtime.spawn(other, { input: "x" })).toThrow(/another agent `echo`/);
    runtime.replace(other);
    expect((await runtime.spawn("echo", { input: "x" }).result).text).toBe("other");
    const fresh = agentWith(() => ({ say: "fresh" }), { name: "fresh" });
    runtime.replace(other.with({ subagents: [fresh] }));
    expect((await runtime.spawn("fresh", { input: "x" }).result).text).toBe("fresh");
    expect(() => runtime.spawn("ecko", { input: "x" })).toThrow(/did you mean `echo`/);
  });

  test("rejects a result for a call that was never accepted", async () => {
    const runtime = runtimeWith();
    const { agent, entered } = atGate();
    const { id } = runtime.spawn(agent, { input: "go" });
    await entered;
    await expect(runtime.spawn(echo, { input: "x", thread: id }).result).rejects.toMatchObject({
      code: "thread_busy",
    });
  });
});

describe("a handle", () => {
  test("without input waits for one", async () => {
    const handle = runtimeWith().spawn(echo);
    expect(await handle.status()).toBe("idle");
    await expect(handle.result).rejects.toMatchObject({ code: "run_not_active" });
    await handle.send("hello");
    expect((await handle.result).text).toBe("heard 1");
    await handle.send("and again");
    expect((await handle.result).text).toBe("heard 3");
    expect(await handle.history()).toHaveLength(4);
  });

  test("steers an active run", async () => {
    const { tool, open, entered } = gate();
    const script = ({ messages }: { messages: readonly { content: unknown }[] }) =>
      messages.length === 1 ? { call: [{ tool: "gate" }] } : { say: String(messages.at(-1)?.content) };
    const handle = runtimeWith().spawn(agentWith(script, { tools: [tool] }), { input: "go" });
    const before = await handle.run();
    await entered;
    await handle.send("and mind the time");
    open();
    expect((await handle.result).text).toBe("and mind the time");
    expect((await handle.run())?.id).toBe(before?.id);
  });

  test("sends events to any number of subscribers, run after run, until they leave", async () => {
    const handle = runtimeWith().spawn(echo);
    const ends = Array.from({ length: 2 }, () => Promise.withResolvers<void>());
    const seen: StreamEvent["event"][][] = [[], []];
    const leave = seen.map((events, index) =>
      handle.subscribe(({ event }) => {
        events.push(event);
        if (events.filter((each) => each === "done").length === 2 - index) ends[index]?.resolve();
      }),
    );
    await handle.send("hello");
    await handle.result;
    await ends[1]?.promise;
    leave[1]?.();
    await handle.send("again");
    await ends[0]?.promise;
    const runs = seen.map((events) => events.filter((each) => each === "run_start").length);
    expect(runs).toEqual([2, 1]);
  });

  test("keeps delivering to a subscriber that throws, and logs the error", async () => {
    const errors: string[] = [];
    const logger = { info() {}, warn() {}, error: (_: object, message: string) => void errors.push(message) };
    const handle = runtimeWith({ logger }).spawn(echo, { input: "hello" });
    const over = Promise.withResolvers<void>();
    handle.subscribe(({ event }) => {
      if (event === "done") over.resolve();
      throw new Error("no");
    });
    await over.promise;
    expect(errors.length).toBeGreaterThan(3);
  });

  test("logs the errors that a subscriber throws later too", async () => {
    const errors: string[] = [];
    const error = (_: object, message: string) => void errors.push(message);
    const handle = runtimeWith({ logger: { info() {}, warn() {}, error } }).spawn(echo, { input: "hello" });
    const heard: string[] = [];
    handle.subscribe(async ({ event }) => {
      heard.push(event);
      await Promise.reject(new Error("no"));
    });
    await expect.poll(() => heard.at(-1)).toBe("done");
    await expect.poll(() => errors.length).toBe(heard.length);
  });

  test("stops after the current step, or immediately", async () => {
    for (const [method, status] of [
      ["interrupt", "interrupted"],
      ["cancel", "cancelled"],
    ] as const) {
      const { agent, entered, open } = atGate();
      const handle = runtimeWith().spawn(agent, { input: "go" });
      await entered;
      const stopped = handle[method]();
      open();
      await stopped;
      expect((await handle.result).status).toBe(status);
      await handle[method](); // what has ended is left as it is
    }
  });

  test("is cancelled by its signal only until the run ends that it was given to", async () => {
    const leaving = new AbortController();
    const handle = runtimeWith().spawn(echo, { input: "hello", signal: leaving.signal });
    await handle.result;
    expect(getEventListeners(leaving.signal, "abort")).toEqual([]);
  });

  test("leads from a thread to those of its subagents, and back", async () => {
    const coder = agentWith([completing("Done.")], { name: "coder", description: "Writes code" });
    const script = [delegating({ agent: "coder", task: "Write it." }), { say: "Done." }];
    const lead = agentWith(script, { name: "lead", subagents: [coder] });
    const handle = runtimeWith().spawn(lead, { input: "go" });
    await handle.result;
    const children = await handle.children();
    expect(children.map(({ agent }) => agent)).toEqual(["coder"]);
    expect((await children[0]?.parent())?.id).toBe(handle.id);
    expect(await handle.parent()).toBeUndefined();
  });

  test("stores the thread's description", async () => {
    const handle = runtimeWith().spawn(echo);
    await handle.describe({ title: "Talk", metadata: { topic: "birds" } });
    expect(await handle.metadata()).toEqual({ topic: "birds" });
  });
});

test("events end with a consumer that leaves in the middle", async () => {
  const { agent, entered, open } = atGate();
  const handle = runtimeWith().spawn(agent, { input: "go" });
  for await (const { event } of handle.events()) if (event === "on_tool_start") break;
  await entered;
  open();
  const all = await collect(handle.events());
  expect(all.at(-1)?.event).toBe("done");
  expect(await collect(handle.events(2))).toEqual(all.slice(2));
});

test("an agent works in a custom backend, which the caller closes", async () => {
  const backend = await workspace({});
  const script = [
    { call: [{ tool: "write_file", args: { path: "a.txt", content: "hello" } }] },
    { say: "Done." },
  ];
  await runtimeWith().spawn(agentWith(script, { backend }), { input: "Write." }).result;
  expect(await names(backend, ".")).toContain("a.txt");
});
