import { describe, expect, test } from "vitest";
import { z } from "zod";
import { AppError, abortRun } from "../../src/core/errors.ts";
import type { Hook } from "../../src/core/hook.ts";
import { conversation, lastContent, toolMessages, unanswered, userMessage } from "../../src/core/message.ts";
import type { Model } from "../../src/core/model.ts";
import { setState } from "../../src/core/run.ts";
import { defineTool, failed, interrupted, type Tool, type ToolAnnotations } from "../../src/core/tool.ts";
import { play } from "../support/agent.ts";
import { dataOf, names, textSeen } from "../support/drain.ts";

const echo = defineTool({
  name: "echo",
  description: "Says it again.",
  parameters: z.object({ text: z.string() }),
  execute: ({ text }) => `echo: ${text}`,
});

/** A tool that runs until it is cancelled, and tells when it has begun. */
function endless(begun: () => void, name = "endless"): Tool {
  return defineTool({
    name,
    description: "Never ends by itself.",
    parameters: z.object({}),
    execute: (_args, _call, run) =>
      new Promise<string>((_, reject) => {
        run.signal.addEventListener("abort", () => reject(run.signal.reason));
        begun();
      }),
  });
}

describe("a run", () => {
  test("streams the model's words and ends with them in the thread", async () => {
    const { events, outcome, messages } = await play({ script: [{ say: "Hello to you." }] });
    expect(outcome).toMatchObject({ status: "success", stop_reason: "end_turn" });
    expect(textSeen(events)).toBe("Hello to you.");
    expect(messages.map((m) => m.role)).toEqual(["user", "assistant"]);
    expect(lastContent(messages)).toBe("Hello to you.");
    expect(names(events)).toEqual([
      "run_start",
      "on_message",
      "on_chat_model_start",
      "on_chat_model_stream",
      "on_chat_model_stream",
      "on_chat_model_stream",
      "on_chat_model_end",
      "on_message",
      "done",
    ]);
  });

  test("gives the model the results of its tools and continues", async () => {
    const { messages, outcome } = await play({
      tools: [echo],
      script: (request) =>
        request.messages.at(-1)?.role === "tool"
          ? { say: `It said ${lastContent(request.messages)}` }
          : { call: [{ tool: "echo", args: { text: "hi" } }] },
    });
    expect(outcome.status).toBe("success");
    expect(lastContent(messages)).toBe("It said echo: hi");
  });

  test("counts the tokens of all its model calls", async () => {
    const usage = { input_tokens: 10, output_tokens: 5, cache_read_tokens: 4 };
    const { events } = await play({
      tools: [echo],
      script: [
        { call: [{ tool: "echo", args: { text: "a" } }], usage },
        { say: "b", usage },
      ],
    });
    expect(dataOf(events, "done")[0]?.usage).toEqual({
      input_tokens: 20,
      output_tokens: 10,
      cache_read_tokens: 8,
      cache_write_tokens: 0,
    });
  });

  test("stops at its iteration limit with every call answered and says why", async () => {
    const { events, messages, outcome } = await play({
      tools: [echo],
      maxIterations: 3,
      script: () => ({ call: [{ tool: "echo", args: { text: "again" } }] }),
    });
    expect(outcome).toEqual({ status: "error", stop_reason: "max_iterations" });
    expect(dataOf(events, "done")[0]).toMatchObject({ status: "error", stop_reason: "max_iterations" });
    expect(toolMessages(messages)).toHaveLength(3);
    expect(unanswered(messages)).toEqual([]);
  });

  test("asks its model 25 times at most, unless its agent says otherwise", async () => {
    let calls = 0;
    const { outcome } = await play({
      tools: [echo],
      script: () => {
        calls++;
        return { call: [{ tool: "echo", args: { text: "more" } }] };
      },
    });
    expect(calls).toBe(25);
    expect(outcome).toMatchObject({ status: "error", stop_reason: "max_iterations" });
  });

  test("offers its model the tools in the order of their names", async () => {
    const offered: string[] = [];
    await play({
      tools: ["write", "echo", "read"].map((name) => ({ ...echo, name })),
      script: ({ tools }) => {
        offered.push(...tools.map(({ name }) => name));
        return { say: "ok" };
      },
    });
    expect(offered).toEqual(["echo", "read", "write"]);
  });

  test("has no iteration limit at 0", async () => {
    const { outcome } = await play({
      tools: [echo],
      maxIterations: 0,
      script: (_, call) =>
        call < 60 ? { call: [{ tool: "echo", args: { text: "x" }, id: `c${call}` }] } : { say: "end" },
    });
    expect(outcome.status).toBe("success");
  });

  test("leaves an empty answer out of the thread", async () => {
    const { messages, outcome } = await play({ script: [{ say: "" }] });
    expect(outcome).toEqual({ status: "success", stop_reason: "end_turn" });
    expect(messages.map((m) => m.role)).toEqual(["user"]);
  });

  test("fails with the model's error when nothing can be done about it", async () => {
    const { events, outcome, messages } = await play({
      script: [{ say: "half", fail: { code: "model_rejected", message: "no" } }],
    });
    expect(outcome).toMatchObject({ status: "error" });
    expect(dataOf(events, "error")[0]).toMatchObject({ code: "model_rejected", message: "no" });
    expect(messages.map((m) => m.role)).toEqual(["user"]);
  });

  test("hides what it does not understand from the client", async () => {
    const leaky: Model = {
      name: "leaky",
      stream() {
        throw new Error("password=hunter2");
      },
    };
    const { events } = await play({ model: leaky });
    expect(JSON.stringify(events)).not.toContain("hunter2");
    expect(dataOf(events, "error")[0]?.code).toBe("internal");
  });

  test("that fails before its open calls are run says of them that they were not run", async () => {
    const hook: Hook = {
      name: "failing",
      beforeAgent() {
        throw abortRun("The disk is on fire.");
      },
    };
    const open = conversation().user("go").assistant("", { id: "c1", name: "echo", args: {} });
    const { messages } = await play({ hooks: [hook], say: null, input: { messages: open.messages } });
    expect(toolMessages(messages)).toMatchObject([{ error: "Not run: the run ended before it." }]);
  });
});

describe("tool calls of one message", () => {
  test("run side by side, and each result is in the thread the moment it is known", async () => {
    const order: string[] = [];
    let releaseSlow = () => {};
    const slow = defineTool({
      name: "slow",
      description: "",
      parameters: z.object({}),
      execute: async () => {
        await new Promise<void>((resolve) => (releaseSlow = resolve));
        return "slow";
      },
    });
    const { messages } = await play({
      tools: [slow, echo],
      script: [{ call: [{ tool: "slow" }, { tool: "echo", args: { text: "quick" } }] }, { say: "ok" }],
      onEvent: (event) => {
        if (event.event !== "on_message" || event.data.message.role !== "tool") return;
        order.push(event.data.message.name);
        releaseSlow();
      },
    });
    expect(order).toEqual(["echo", "slow"]);
    expect(toolMessages(messages)).toHaveLength(2);
  });

  test("are never more than sixteen at a time", async () => {
    let now = 0;
    let most = 0;
    const count = defineTool({
      name: "count",
      description: "",
      parameters: z.object({}),
      async execute() {
        most = Math.max(most, ++now);
        await new Promise((resolve) => setImmediate(resolve));
        now--;
        return "";
      },
    });
    const call = Array.from({ length: 50 }, () => ({ tool: "count" }));
    const { messages } = await play({ tools: [count], script: [{ call }, { say: "ok" }] });
    expect(toolMessages(messages)).toHaveLength(50);
    expect(most).toBe(16);
  });

  test("that fail tell the model, and the loop continues", async () => {
    const broken = defineTool({
      name: "broken",
      description: "",
      parameters: z.object({}),
      execute() {
        throw new Error("no such planet");
      },
    });
    const { messages, outcome, events } = await play({
      tools: [broken],
      script: [{ call: [{ tool: "broken" }] }, { say: "I see." }],
    });
    expect(outcome.status).toBe("success");
    expect(toolMessages(messages)[0]).toMatchObject({ error: "no such planet", content: "" });
    expect(dataOf(events, "on_tool_end")[0]?.error).toBe("no such planet");
  });

  test.each([
    ["an unknown tool", { tool: "ehco", args: {} }, /no tool `ehco`.*echo/],
    ["arguments that do not fit", { tool: "echo", args: { text: 7 } }, /text: .*string/],
    ["arguments that are not JSON", { tool: "echo", malformed: '{"text": "a' }, /not a JSON object/],
  ])("with %s get an error the model can learn from", async (_, call, message) => {
    const { messages } = await play({ tools: [echo], script: [{ call: [call] }, { say: "sorry" }] });
    expect(toolMessages(messages)[0]?.error).toMatch(message);
  });

  test("that share an id are kept apart", async () => {
    const call = [
      { tool: "echo", args: { text: "one" }, id: "same" },
      { tool: "echo", args: { text: "two" }, id: "same" },
    ];
    const { messages } = await play({ tools: [echo], script: [{ call }, { say: "ok" }] });
    const results = toolMessages(messages).map(({ tool_call_id, content }) => [tool_call_id, content]);
    expect(results.toSorted()).toEqual([
      ["same", "echo: one"],
      ["same_2", "echo: two"],
    ]);
  });

  test("that must wait suspend the run, while the others get their results", async () => {
    const ask = defineTool({
      name: "ask",
      description: "",
      parameters: z.object({}),
      execute: () => interrupted(),
    });
    const { messages, outcome, events } = await play({
      tools: [ask, echo],
      script: [
        {
          call: [
            { tool: "ask", id: "a" },
            { tool: "echo", args: { text: "x" }, id: "b" },
          ],
        },
      ],
    });
    expect(outcome).toMatchObject({ status: "interrupted", calls: [{ id: "a" }] });
    expect(dataOf(events, "done")[0]?.status).toBe("interrupted");
    expect(unanswered(messages).map((call) => call.id)).toEqual(["a"]);
    expect(dataOf(events, "on_tool_end").find((end) => end.call_id === "a")?.interrupted).toBe(true);
  });

  test("end the run when one of them says so, and the others are answered", async () => {
    const abort = defineTool({
      name: "abort",
      description: "",
      parameters: z.object({}),
      execute() {
        throw abortRun("The disk is on fire.");
      },
    });
    const { messages, outcome } = await play({
      tools: [abort, endless(() => {})],
      script: [{ call: [{ tool: "endless" }, { tool: "abort" }] }],
    });
    expect(outcome).toMatchObject({
      status: "error",
      error: { code: "run_aborted", message: "The disk is on fire." },
    });
    expect(unanswered(messages)).toEqual([]);
  });
});

describe("resuming", () => {
  const open = conversation()
    .user("go")
    .assistant("", { id: "c1", name: "echo", args: { text: "late" } }).messages;

  test("a resume runs the calls that nothing answers, then asks the model", async () => {
    const { messages } = await play({
      tools: [echo],
      say: null,
      input: { messages: open },
      script: (request) => ({ say: `saw ${lastContent(request.messages)}` }),
    });
    expect(lastContent(messages)).toBe("saw echo: late");
  });

  test("a new message on a thread with unanswered calls answers them as interrupted first", async () => {
    const { messages } = await play({ tools: [echo], say: "never mind", input: { messages: open } });
    expect(messages.map((m) => m.role)).toEqual(["user", "assistant", "tool", "user", "assistant"]);
    expect(toolMessages(messages)[0]?.error).toMatch(/Interrupted/);
  });

  test("a resumed run with nothing to do ends at once", async () => {
    const { messages } = conversation().user("2+2?").assistant("4");
    const { events, outcome } = await play({ say: null, input: { messages } });
    expect(names(events)).toEqual(["run_start", "done"]);
    expect(outcome).toMatchObject({ status: "success", message: { content: "4" } });
  });

  test("a resumed run warns of an answer to a closed interrupt", async () => {
    const { messages } = conversation().user("2+2?").assistant("4");
    const answers = [{ id: "approval_c1", decision: "approve" as const }];
    const { events } = await play({ say: null, input: { messages, answers } });
    expect(dataOf(events, "warning")).toMatchObject([{ code: "interrupt_closed" }]);
  });

  test("a run that is cancelled before it begins answers what waits, and does nothing else", async () => {
    const { messages } = conversation()
      .user("Say it.")
      .assistant("", { id: "c1", name: "echo", args: { text: "hi" } });
    const seen: string[] = [];
    const hook: Hook = {
      name: "seer",
      beforeAgent: () => void seen.push("before"),
      afterAgent: () => void seen.push("after"),
    };
    const { events, outcome } = await play({
      ...{ say: null, tools: [echo], hooks: [hook] },
      input: { messages, signal: AbortSignal.abort() },
    });
    expect(names(events)).toEqual(["run_start", "on_message", "done"]);
    expect(outcome).toMatchObject({ status: "cancelled" });
    expect(seen).toEqual(["after"]);
  });

  test("a message that the thread holds already is not added again", async () => {
    const message = userMessage("once");
    const { messages, events } = await play({
      input: { messages: [message], input: [message], attempt: 2 },
      say: null,
    });
    expect(messages.filter((m) => m.role === "user")).toHaveLength(1);
    expect(events[0]).toEqual({ event: "run_resumed", data: { attempt: 2 } });
  });

  test("after a crash a call that had begun is repeated only when that does no harm", async () => {
    const ran: string[] = [];
    const tool = (name: string, annotations: ToolAnnotations) =>
      defineTool({
        ...{ name, description: "", parameters: z.object({}), annotations },
        execute: () => {
          ran.push(name);
          return "done";
        },
      });
    const crashed = conversation()
      .user("go")
      .assistant(
        "",
        { id: "c1", name: "safe", args: {} },
        { id: "c2", name: "pay", args: {} },
        { id: "c3", name: "pay", args: {} },
        { id: "c4", name: "look", args: {} },
      ).messages;
    const { messages } = await play({
      tools: [tool("safe", { idempotent: true }), tool("look", { readOnly: true }), tool("pay", {})],
      say: null,
      input: { messages: crashed, begun: new Set(["c1", "c2", "c4"]) },
    });
    expect(ran).toEqual(["safe", "pay", "look"]);
    expect(toolMessages(messages).find((m) => m.tool_call_id === "c2")?.error).toMatch(/Outcome unknown/);
    expect(toolMessages(messages).find((m) => m.tool_call_id === "c3")?.content).toBe("done");
  });

  test("after a crash a call that had begun is never reported as not run, also when the run is cancelled", async () => {
    const crashed = conversation()
      .user("go")
      .assistant("", { id: "c1", name: "pay", args: {} }, { id: "c2", name: "pay", args: {} }).messages;
    const { messages, outcome } = await play({
      say: null,
      input: { messages: crashed, begun: new Set(["c1"]), attempt: 2, signal: AbortSignal.abort() },
    });
    expect(outcome.status).toBe("cancelled");
    expect(toolMessages(messages).map(({ error }) => error)).toEqual([
      expect.stringMatching(/^Outcome unknown/),
      "Cancelled before it was run.",
    ]);
  });

  test("messages sent while it works are taken in before the next model call, once", async () => {
    const sent = userMessage("in French, please");
    const { messages } = await play({
      tools: [echo],
      input: { inbox: async () => [sent] },
      script: [{ call: [{ tool: "echo", args: { text: "x" } }] }, { say: "oui" }],
    });
    expect(messages.filter((m) => m.id === sent.id)).toHaveLength(1);
  });

  test("a message that arrives with the last answer is answered too", async () => {
    let calls = 0;
    const sent = userMessage("one more thing");
    const { messages } = await play({
      input: { inbox: async () => (calls > 0 ? [sent] : []) },
      script: () => ({ say: `answer ${++calls}` }),
    });
    expect(messages.map((m) => m.role)).toEqual(["user", "assistant", "user", "assistant"]);
  });
});

describe("stopping", () => {
  test("a cancel in the middle of tools answers every call and closes every bracket", async () => {
    const controller = new AbortController();
    const { outcome, messages, events } = await play({
      tools: [endless(() => controller.abort()), echo],
      input: { signal: controller.signal },
      script: [{ call: [{ tool: "endless" }, { tool: "echo", args: { text: "x" } }] }],
    });
    expect(outcome.status).toBe("cancelled");
    expect(dataOf(events, "done")[0]?.status).toBe("cancelled");
    expect(unanswered(messages)).toEqual([]);
  });

  test("a cancel does not wait for a tool that will not listen", async () => {
    const controller = new AbortController();
    const deaf = defineTool({
      name: "deaf",
      description: "",
      parameters: z.object({}),
      execute() {
        controller.abort();
        return new Promise<string>(() => {});
      },
    });
    const { outcome } = await play({
      tools: [deaf],
      input: { signal: controller.signal },
      script: [{ call: [{ tool: "deaf" }] }],
    });
    expect(outcome.status).toBe("cancelled");
  });

  test("a cancel in the middle of the model's words discards them", async () => {
    const controller = new AbortController();
    const { outcome, messages, events } = await play({
      input: { signal: controller.signal },
      script: [{ say: "a long story that is cut short", delay_ms: 1 }],
      onEvent: (event) => event.event === "on_chat_model_stream" && controller.abort(),
    });
    expect(outcome.status).toBe("cancelled");
    expect(dataOf(events, "on_chat_model_end")[0]?.error?.code).toBe("cancelled");
    expect(messages.map((m) => m.role)).toEqual(["user"]);
  });

  test("an interrupt lets the step finish and leaves nothing open", async () => {
    let asked = false;
    const { outcome, messages } = await play({
      tools: [echo],
      input: { interruptRequested: () => asked },
      script: () => {
        asked = true;
        return { call: [{ tool: "echo", args: { text: "x" } }] };
      },
    });
    expect(outcome).toMatchObject({ status: "interrupted", stop_reason: "interrupt" });
    expect(unanswered(messages)).toEqual([]);
    expect(toolMessages(messages)[0]?.content).toBe("echo: x");
  });

  test("a consumer that stops reading in the middle of a tool leaves nothing running", async () => {
    let ended: unknown;
    const holder = defineTool({
      name: "holder",
      description: "",
      parameters: z.object({}),
      async *execute(_args, call, run) {
        run.signal.addEventListener("abort", () => (ended = "aborted"));
        yield { event: "on_tool_progress", name: "holder", data: { call_id: call.id, output: "." } };
        return new Promise<string>(() => {});
      },
    });
    const reading = play({
      tools: [holder],
      script: [{ call: [{ tool: "holder" }] }],
      onEvent: (event) => {
        if (event.event === "on_tool_progress") throw new Error("the viewer left");
      },
    });
    await expect(reading).rejects.toThrow("the viewer left");
    expect(ended).toBe("aborted");
  });
});

describe("hooks", () => {
  const trace = (name: string, log: string[]): Hook => ({
    name,
    beforeAgent: () => void log.push(`${name} before`),
    async modifyRequest(request) {
      log.push(`${name} modify`);
      return { ...request, system: [...request.system, { id: name, text: name, cache: "dynamic" }] };
    },
    async *wrapModelCall(request, next) {
      log.push(`${name} model >`);
      const reply = yield* next(request);
      log.push(`${name} model <`);
      return reply;
    },
    async *wrapToolCall(request, next) {
      log.push(`${name} tool >`);
      const result = yield* next(request);
      log.push(`${name} tool <`);
      return result;
    },
    afterAgent: (outcome) => void log.push(`${name} after ${outcome.status}`),
  });

  test("wrap like an onion, the first outermost; afterwards in reverse", async () => {
    const log: string[] = [];
    await play({
      hooks: [trace("a", log), trace("b", log)],
      tools: [echo],
      script: [{ call: [{ tool: "echo", args: { text: "x" } }] }, { say: "ok" }],
    });
    const model = ["a modify", "b modify", "a model >", "b model >", "b model <", "a model <"];
    const tool = ["a tool >", "b tool >", "b tool <", "a tool <"];
    expect(log).toEqual([
      "a before",
      "b before",
      ...model,
      ...tool,
      ...model,
      "b after success",
      "a after success",
    ]);
  });

  test("may deny, rewrite and change results", async () => {
    const gate: Hook = {
      name: "gate",
      async *wrapToolCall(request, next) {
        if (request.call.args.text === "secret") return failed("Denied: not that one.");
        const result = yield* next({ ...request, call: { ...request.call, args: { text: "rewritten" } } });
        return result.status === "done" ? { ...result, output: `${String(result.output)}!` } : result;
      },
    };
    const call = [
      { tool: "echo", args: { text: "secret" } },
      { tool: "echo", args: { text: "open" } },
    ];
    const { messages } = await play({ hooks: [gate], tools: [echo], script: [{ call }, { say: "ok" }] });
    const results = toolMessages(messages).sort((a, b) => (a.tool_call_id < b.tool_call_id ? -1 : 1));
    expect(results[0]?.error).toBe("Denied: not that one.");
    expect(results[1]?.content).toBe("echo: rewritten!");
  });

  test("may keep the model working when it wants to stop", async () => {
    let left = 1;
    const nudge: Hook = {
      name: "nudge",
      onStop: () => (left-- > 0 ? userMessage("Are you sure?") : undefined),
    };
    const { messages } = await play({ hooks: [nudge], script: [{ say: "done" }, { say: "now really" }] });
    expect(lastContent(messages)).toBe("now really");
  });

  test("that fail before the run name themselves and fail it", async () => {
    const broken: Hook = {
      name: "memory",
      beforeAgent: () => Promise.reject(new Error("cannot read")),
    };
    const { events, outcome } = await play({ hooks: [broken] });
    expect(outcome.status).toBe("error");
    expect(dataOf(events, "error")[0]).toMatchObject({
      code: "hook_failed",
      message: "Hook `memory` failed: cannot read",
    });
  });

  test("that fail after the run do not lose the answer", async () => {
    const broken: Hook = {
      name: "billing",
      afterAgent: () => {
        throw new Error("no ink");
      },
    };
    const { events, outcome } = await play({ hooks: [broken] });
    expect(outcome.status).toBe("success");
    expect(dataOf(events, "warning")[0]?.message).toBe("Hook `billing` failed after the run: no ink");
  });

  test("see no end when the run continues elsewhere", async () => {
    const gone = new AbortController();
    const told: string[] = [];
    const hook: Hook = {
      name: "told",
      modifyRequest(request) {
        gone.abort(new AppError("lease_lost", "The run was taken over."));
        return request;
      },
      afterAgent: ({ status }) => void told.push(status),
    };
    await expect(play({ hooks: [hook], input: { signal: gone.signal } })).rejects.toMatchObject({
      code: "lease_lost",
    });
    expect(told).toEqual([]);
  });

  test("change the thread's state by events alone", async () => {
    const hook: Hook = { name: "title", beforeAgent: (run) => setState(run, "title", "A talk") };
    const { state } = await play({ hooks: [hook] });
    expect(state.get("title")).toBe("A talk");
  });

  test("may not shadow a tool that is there", async () => {
    const { registerTool } = await import("../../src/core/run.ts");
    const thief: Hook = {
      name: "thief",
      beforeAgent: (run) => registerTool(run, { ...echo, description: "mine" }),
    };
    const { outcome } = await play({ hooks: [thief], tools: [echo] });
    expect(outcome).toMatchObject({ status: "error", error: { code: "hook_failed" } });
  });
});
