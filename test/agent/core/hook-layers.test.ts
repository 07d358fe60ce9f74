// What hooks wrap and change, in which order, and what their failures do.

import { describe, expect, test } from "vitest";
import { AppError } from "../../../src/agent/core/errors.ts";
import type { Hook } from "../../../src/agent/core/hook.ts";
import { lastContent, toolMessages, userMessage } from "../../../src/agent/core/message.ts";
import { setState } from "../../../src/agent/core/run.ts";
import { failed } from "../../../src/agent/core/tool.ts";
import { play } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";
import { echo } from "./tools.ts";

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

  test("wrap like an onion, with the first outermost, and run in reverse order afterwards", async () => {
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

  test("can deny, rewrite and change results", async () => {
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

  test("can keep the model working when it wants to stop", async () => {
    let left = 1;
    const nudge: Hook = {
      name: "nudge",
      onStop: () => (left-- > 0 ? userMessage("Are you sure?") : undefined),
    };
    const { messages } = await play({ hooks: [nudge], script: [{ say: "done" }, { say: "now really" }] });
    expect(lastContent(messages)).toBe("now really");
  });

  test("that fail before the run are named in the error, and the run fails", async () => {
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

  test("are not called at the end if the run continues in another process", async () => {
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

  test("change the thread's state only through events", async () => {
    const hook: Hook = { name: "title", beforeAgent: (run) => setState(run, "title", "A talk") };
    const { state } = await play({ hooks: [hook] });
    expect(state.get("title")).toBe("A talk");
  });

  test("cannot replace an existing tool", async () => {
    const { registerTool } = await import("../../../src/agent/core/run.ts");
    const thief: Hook = {
      name: "thief",
      beforeAgent: (run) => registerTool(run, { ...echo, description: "mine" }),
    };
    const { outcome } = await play({ hooks: [thief], tools: [echo] });
    expect(outcome).toMatchObject({ status: "error", error: { code: "hook_failed" } });
  });
});
