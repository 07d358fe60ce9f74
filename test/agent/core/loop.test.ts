// A run of the loop, from its input to its answer.

import { describe, expect, test } from "vitest";
import { abortRun } from "../../../src/agent/core/errors.ts";
import type { Hook } from "../../../src/agent/core/hook.ts";
import { conversation, lastContent, toolMessages, unanswered } from "../../../src/agent/core/message.ts";
import type { Model } from "../../../src/agent/core/model.ts";
import { play } from "../../support/agent.ts";
import { dataOf, names, textSeen } from "../../support/drain.ts";
import { echo } from "./tools.ts";

describe("a run", () => {
  test("streams the model's text and ends with it in the thread", async () => {
    const { events, outcome, messages } = await play({ script: [{ say: "Hello to you." }] });
    expect(outcome).toMatchObject({ status: "success", stop_reason: "end_turn" });
    expect(textSeen(events)).toBe("Hello to you.");
    expect(messages.map((m) => m.role)).toEqual(["user", "assistant"]);
    expect(lastContent(messages)).toBe("Hello to you.");
    expect(names(events)).toEqual([
      ...["run_start", "on_message", "on_chat_model_start"],
      ...Array(3).fill("on_chat_model_stream"),
      ...["on_chat_model_end", "on_message", "done"],
    ]);
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
      cache_hit_ratio: 0.4,
    });
  });

  test("stops at its iteration limit with every call answered, and reports the reason", async () => {
    const { events, messages, outcome } = await play({
      tools: [echo],
      maxIterations: 3,
      script: () => ({ call: [{ tool: "echo", args: { text: "again" } }] }),
    });
    expect(outcome).toMatchObject({ status: "error", stop_reason: "max_iterations" });
    expect(dataOf(events, "done")[0]).toMatchObject({
      ...{ status: "error", stop_reason: "max_iterations" },
      details: { limit: "max_iterations", most: 3, used: 3, left: 0 },
    });
    expect(toolMessages(messages)).toHaveLength(3);
    expect(unanswered(messages)).toEqual([]);
  });

  test("calls its model at most 25 times unless its agent sets another limit", async () => {
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

  test("offers the model its tools in order of their names", async () => {
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

  test("that ends after a complete message keeps no incomplete copy of it", async () => {
    const { messages } = await play({
      tools: [echo],
      maxIterations: 1,
      script: () => ({ say: "I look.", call: [{ tool: "echo", args: { text: "again" } }] }),
    });
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
  });

  test("has no iteration limit if the limit is 0", async () => {
    const { outcome } = await play({
      tools: [echo],
      maxIterations: 0,
      script: (_, call) =>
        call < 60 ? { call: [{ tool: "echo", args: { text: "x" }, id: `c${call}` }] } : { say: "end" },
    });
    expect(outcome.status).toBe("success");
  });

  test("does not add an empty answer to the thread", async () => {
    const { messages, outcome, events } = await play({ script: [{ say: "" }] });
    expect(outcome).toEqual({ status: "success", stop_reason: "end_turn", isEmpty: true });
    expect(events.at(-1)).toMatchObject({
      event: "done",
      data: { message: "The model returned no answer." },
    });
    expect(messages.map((m) => m.role)).toEqual(["user"]);
  });

  test("fails with the model's error if nothing can fix it", async () => {
    const { events, outcome, messages } = await play({
      script: [{ say: "half", fail: { code: "model_rejected", message: "no" } }],
    });
    expect(outcome).toMatchObject({ status: "error" });
    expect(dataOf(events, "error")[0]).toMatchObject({ code: "model_rejected", message: "no" });
    expect(messages.slice(1)).toMatchObject([{ role: "assistant", content: "half", incomplete: "failed" }]);
  });

  test("hides errors that it does not understand from the client", async () => {
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

  test("that fails before executing its open calls reports them as not run", async () => {
    const hook: Hook = {
      name: "failing",
      beforeAgent() {
        throw abortRun("The disk is on fire.");
      },
    };
    const open = conversation().user("go").assistant("", { id: "c1", name: "echo", args: {} });
    const { messages } = await play({ hooks: [hook], say: null, input: { messages: open.messages } });
    expect(toolMessages(messages)).toMatchObject([
      { error: "Not run: the run ended before this call started." },
    ]);
  });
});
