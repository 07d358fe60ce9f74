import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { AgentInternals, AgentLoop } from "../../../src/agent/core/custom-loop.ts";
import type { Hook } from "../../../src/agent/core/hook.ts";
import { NO_USAGE, toolMessage } from "../../../src/agent/core/message.ts";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { type AgentHandle, type AgentOptions, createAgent } from "../../../src/index.ts";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import { checkGrammar } from "../../../src/protocol/grammar.ts";
import { gate } from "../../support/gate.ts";
import { agentWith, collect, runtimeWith } from "../../support/library.ts";

const add = defineTool({
  name: "add",
  description: "Adds.",
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => String(a + b),
});
const sum = (id: string, a: number, b: number) => ({ tool: "add", id, args: { a, b } });

/** Skein's default loop as a custom loop. */
const plain: AgentLoop = async function* (agent) {
  while (yield* agent.receive()) {
    for (;;) {
      yield* agent.callTools(agent.openCalls());
      const { message } = yield* agent.speak();
      if (!message.tool_calls) break;
    }
  }
};

/** The events of every custom loop keep the grammar. */
async function ended(handle: AgentHandle) {
  const result = await handle.result;
  expect(checkGrammar(await collect(handle.events()))).toEqual([]);
  return result;
}

const spawn = (options: AgentOptions, input = "go") => runtimeWith().spawn(createAgent(options), { input });

describe("a custom loop", () => {
  test("calls the model and runs its calls, through the hooks", async () => {
    const seen: string[] = [];
    const watched = (): Hook => ({
      name: "watched",
      wrapToolCall(request, next) {
        seen.push(request.call.name);
        return next(request);
      },
    });
    const agent = agentWith([{ call: [sum("c1", 1, 2), sum("c2", 3, 4)] }, { say: "3 and 7." }], {
      ...{ loop: plain, tools: [add], hooks: [watched] },
    });
    const result = await ended(runtimeWith().spawn(agent, { input: "Add." }));
    expect(result).toMatchObject({ status: "success", stop_reason: "end_turn", text: "3 and 7." });
    expect(result.messages.map(({ content }) => content)).toEqual(["Add.", "", "3", "7", "3 and 7."]);
    expect(seen).toEqual(["add", "add"]);
  });

  test("needs no model, and can write and call anything", async () => {
    const handle = spawn({
      tools: [add],
      async *loop(agent) {
        const input = yield* agent.receive();
        const [first, second] = yield* agent.callTools([
          { id: "one", name: "add", args: { a: 1, b: 1 } },
          { id: "two", name: "add", args: { a: "x" } },
        ]);
        yield* agent.say(`${input?.content}: ${JSON.stringify([first, second?.status])}`);
        yield* agent.setState("sums", 1);
      },
    });
    const { text, status, messages } = await ended(handle);
    expect({ text, status }).toEqual({
      text: 'go: [{"status":"done","output":"2"},"done"]',
      status: "success",
    });
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "tool", "assistant"]);
    expect(await handle.state()).toMatchObject({ sums: 1 });
  });

  test("that calls a model it does not have fails with an explanation", async () => {
    const handle = spawn({ loop: plain });
    expect(await ended(handle)).toMatchObject({ status: "error", error: { code: "config_invalid" } });
  });

  test("that throws fails the run, which names the agent", async () => {
    const handle = spawn({
      name: "clumsy",
      async *loop(agent) {
        yield* agent.receive();
        throw new Error("oops");
      },
    });
    const { error } = await ended(handle);
    expect(error).toMatchObject({ code: "run_aborted", message: "The loop of agent `clumsy` failed: oops" });
  });

  test.each<StreamEvent>([
    { event: "done", data: { status: "success", stop_reason: "end_turn", usage: NO_USAGE } },
    { event: "error", data: { code: "internal", message: "Mine.", usage: NO_USAGE } },
    { event: "run_start", data: { agent: "a", model: "b", attempt: 1 } },
  ])("cannot emit the start or end of a run: $event", async (event) => {
    const loop: AgentLoop = async function* (agent) {
      yield event;
      yield* agent.say("More.");
    };
    const { status, error, text } = await ended(spawn({ loop }));
    expect([status, text]).toEqual(["error", ""]);
    expect(error).toMatchObject({
      code: "run_aborted",
      message: expect.stringContaining(`\`${event.event}\``),
    });
  });

  test("receives messages that are sent during its work", async () => {
    const { tool, open, entered } = gate();
    const handle = spawn({
      tools: [tool],
      async *loop(agent) {
        yield* agent.receive();
        yield* agent.callTool({ id: "g", name: "gate", args: {} });
        const more = yield* agent.receive();
        yield* agent.say(`also ${more?.content}`);
        expect(yield* agent.receive()).toBeUndefined();
      },
    });
    await entered;
    await handle.send("this");
    open();
    expect((await ended(handle)).text).toBe("also this");
  });

  test("is called again for the next message", async () => {
    const handle = spawn({
      async *loop(agent) {
        for (let input = yield* agent.receive(); input; input = yield* agent.receive())
          yield* agent.say(`${agent.run.messages.length}`);
      },
    });
    expect((await ended(handle)).text).toBe("1");
    await handle.send("again");
    expect((await ended(handle)).text).toBe("3");
  });

  test("ends at the limit of model calls", async () => {
    const agent = agentWith(() => ({ call: [sum("c", 1, 1)] }), {
      ...{ loop: plain, tools: [add], max_iterations: 3 },
    });
    const result = await ended(runtimeWith().spawn(agent, { input: "go" }));
    expect(result).toMatchObject({ status: "error", stop_reason: "max_iterations" });
    expect(result.messages.filter(({ role }) => role === "assistant")).toHaveLength(3);
  });

  test("stops after its step, or at once, even if it ignores the request", async () => {
    for (const [method, status] of [
      ["interrupt", "interrupted"],
      ["cancel", "cancelled"],
    ] as const) {
      const { tool, open, entered } = gate();
      let tidied = false;
      const handle = spawn({
        tools: [tool],
        async *loop(agent) {
          try {
            yield* agent.receive();
            for (let n = 0; n < 100; n++) {
              try {
                yield* agent.callTool({ id: `g${n}`, name: "gate", args: {} });
                yield* agent.say("on");
              } catch {
                // It does not listen.
              }
            }
          } finally {
            tidied = true;
          }
        },
      });
      await entered;
      const stopped = handle[method]();
      open();
      await stopped;
      expect((await ended(handle)).status).toBe(status);
      expect(tidied).toBe(true);
    }
  });

  test("leaves no call of the model without a result", async () => {
    const agent = agentWith(
      [{ call: [sum("c1", 1, 1), sum("c2", 1, 1), sum("c3", 1, 1)] }, { say: "Fine." }],
      {
        tools: [add],
        async *loop(agent: AgentInternals) {
          yield* agent.receive();
          yield* agent.speak();
          const [first, second] = agent.openCalls();
          if (first) yield* agent.refuse(first, "Not today.");
          if (second) yield* agent.append(toolMessage(second, "by hand"));
          yield* agent.speak();
        },
      },
    );
    const { messages } = await ended(runtimeWith().spawn(agent, { input: "go" }));
    const results = messages.filter(({ role }) => role === "tool");
    expect(results).toMatchObject([
      { tool_call_id: "c1", error: "Not today." },
      { tool_call_id: "c2", content: "by hand" },
      { tool_call_id: "c3", error: "Not run: the agent continued without it." },
    ]);
  });

  test("cannot mix its own calls with open ones of the model", async () => {
    const agent = agentWith([{ call: [sum("c1", 1, 1)] }], {
      tools: [add],
      async *loop(agent: AgentInternals) {
        yield* agent.receive();
        yield* agent.speak();
        yield* agent.callTool({ id: "mine", name: "add", args: { a: 1, b: 1 } });
      },
    });
    const { status, error } = await ended(runtimeWith().spawn(agent, { input: "go" }));
    expect({ status, code: error?.code }).toEqual({ status: "error", code: "run_aborted" });
  });

  test("runs its own call once per turn, even if it is called again", async () => {
    let runs = 0;
    const count = defineTool({
      name: "count",
      description: "Counts.",
      parameters: z.object({}),
      execute: () => String(++runs),
    });
    const handle = spawn({
      tools: [count],
      async *loop(agent) {
        yield* agent.receive();
        for (let n = 0; n < 3; n++) yield* agent.callTool({ id: "once", name: "count", args: {} });
      },
    });
    await ended(handle);
    expect(runs).toBe(1);
    await handle.send("again");
    await ended(handle);
    expect(runs).toBe(2);
  });
});

describe("a person", () => {
  const asking: AgentLoop = async function* (agent) {
    while (yield* agent.receive()) {
      for (;;) {
        for (const call of agent.openCalls()) {
          const answer = yield* agent.ask({ call, kind: "approval", prompt: `May ${call.id} run?` });
          if (answer.decision === "approve") yield* agent.callTool(call);
          else yield* agent.refuse(call, answer.message ?? "No.");
        }
        const { message } = yield* agent.speak();
        if (!message.tool_calls) break;
      }
    }
  };

  test("is asked by the loop, which continues with the answer", async () => {
    const agent = agentWith([{ call: [sum("c1", 1, 1), sum("c2", 2, 2)] }, { say: "Done." }], {
      ...{ loop: asking, tools: [add] },
    });
    const handle = runtimeWith().spawn(agent, { input: "Add." });
    const decisions = ["approve", "deny"] as const;
    for (const decision of decisions) {
      const { status, interrupts } = await ended(handle);
      expect({ status, asked: interrupts.length }).toEqual({ status: "interrupted", asked: 1 });
      await handle.answer(interrupts.map(({ id }) => ({ id, decision })));
    }
    expect((await ended(handle)).text).toBe("Done.");
    const results = (await handle.history()).filter(({ role }) => role === "tool");
    expect(results).toMatchObject([{ content: "2" }, { error: "No." }]);
  });

  test("is asked by a hook about a call of the loop", async () => {
    const agent = agentWith([{ call: [sum("c1", 1, 1)] }, { say: "Done." }], {
      ...{ loop: plain, tools: [add], permissions: { mode: "default" } },
    });
    const handle = runtimeWith().spawn(agent, { input: "Add." });
    const { interrupts, status } = await ended(handle);
    expect(status).toBe("interrupted");
    await handle.answer(interrupts.map(({ id }) => ({ id, decision: "approve" })));
    expect((await ended(handle)).text).toBe("Done.");
  });
});
