import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { NO_USAGE, toolMessages, unanswered } from "../../../src/agent/core/message.ts";
import { interrupted } from "../../../src/agent/core/tool.ts";
import { budgets } from "../../../src/agent/hooks/budgets.ts";
import { retry } from "../../../src/agent/hooks/retry.ts";
import { timeout } from "../../../src/agent/hooks/timeout.ts";
import type { Turn } from "../../../src/agent/models/scripted.ts";
import type { EventName, StreamEvent } from "../../../src/protocol/event.ts";
import { plainTool, play } from "../../support/agent.ts";
import { dataOf, textSeen } from "../../support/drain.ts";
import { endless } from "../core/tools.ts";
import { listening, remindersIn, sharedStart } from "./listening.ts";
import { made } from "./made.ts";

const limits = (options: { tokens?: number; seconds?: number; warn_at?: number }) =>
  made(budgets, { options });
const nothing = plainTool("work", () => "worked");
/** A model that works on and on, and reads and writes 100 tokens each time. */
const working = (request: { messages: readonly unknown[] }): Turn => ({
  ...{ say: `step ${request.messages.length}`, call: [{ tool: "work" }] },
  usage: { input_tokens: 60, output_tokens: 40 },
});
const usage = (input_tokens: number) => ({ ...NO_USAGE, input_tokens });

describe("tokens", () => {
  test("once they are used up, the run ends with the reason and its work is kept", async () => {
    const { outcome, messages, events } = await play({
      script: working,
      tools: [nothing],
      hooks: [limits({ tokens: 300 })],
    });
    expect(outcome).toMatchObject({ status: "error", stop_reason: "token_budget" });
    expect(outcome).toMatchObject({ details: { limit: "budgets.tokens", left: 0 } });
    expect(dataOf(events, "done")).toMatchObject([
      {
        status: "error",
        stop_reason: "token_budget",
        usage: { ...NO_USAGE, input_tokens: 180, output_tokens: 120 },
        message_id: expect.any(String),
      },
    ]);
    expect(dataOf(events, "error")).toEqual([]);
    expect(toolMessages(messages).map(({ content }) => content)).toEqual(["worked", "worked", "worked"]);
    expect(unanswered(messages)).toEqual([]);
  });

  test("near the limit, viewers are warned and the model is asked once to finish", async () => {
    const { model, asked } = listening(working);
    const { events, messages } = await play({
      ...{ model, tools: [nothing], hooks: [limits({ tokens: 400, warn_at: 0.5 })] },
    });
    expect(dataOf(events, "warning")).toEqual([
      { code: "token_budget", message: "This run has used 200 of its 400 tokens." },
    ]);
    expect(asked.map((request) => remindersIn(request).length)).toEqual([0, 0, 1, 1]);
    expect(remindersIn(asked[2])[0]).toContain("This run has used 200 of its 400 tokens. Finish now");
    expect(JSON.stringify(messages)).not.toContain("reminder");
  });

  test("the reminder keeps its position in later requests, so the provider's cache stays valid", async () => {
    const { model, asked } = listening(working);
    await play({ model, tools: [nothing], hooks: [limits({ tokens: 600, warn_at: 0.3 })] });
    expect(asked).toHaveLength(6);
    for (const [nth, request] of asked.entries())
      expect(sharedStart(asked[nth - 1], request)).toBe(asked[nth - 1]?.messages.length ?? 0);
  });

  test("a model that finishes with its last token counts as finished", async () => {
    const { outcome } = await play({
      script: [{ say: "done", usage: { input_tokens: 1000 } }],
      hooks: [limits({ tokens: 10 })],
    });
    expect(outcome.status).toBe("success");
  });

  test("include the tokens of earlier attempts", async () => {
    const { model, asked } = listening([{ say: "never" }]);
    const { outcome } = await play({
      model,
      hooks: [limits({ tokens: 500 })],
      input: { attempt: 2, usage: usage(500) },
    });
    expect(outcome).toMatchObject({ status: "error", stop_reason: "token_budget" });
    expect(asked).toEqual([]);
  });

  test("a run that is taken over near its limit is reminded again", async () => {
    const { model, asked } = listening([{ say: "ok" }]);
    await play({ model, hooks: [limits({ tokens: 500 })], input: { attempt: 2, usage: usage(450) } });
    expect(remindersIn(asked[0])).toHaveLength(1);
  });

  test("0 means no limit", async () => {
    const { outcome } = await play({
      script: (request, call) => (call < 5 ? working(request) : { say: "ok" }),
      tools: [nothing],
      hooks: [limits({ tokens: 0, seconds: 0 })],
      input: { usage: usage(10 ** 9) },
    });
    expect(outcome.status).toBe("success");
  });
});

describe("time", () => {
  const overtime = { status: "error", stop_reason: "time_budget" };
  const spent = "The run has used up its 60 seconds.";
  /** An hour goes by at the first event of this name. */
  const hourAt = (name: EventName) => (event: StreamEvent) =>
    event.event === name ? vi.advanceTimersByTimeAsync(3_600_000) : undefined;

  beforeEach(() => void vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  test("stops a model that is still writing and keeps its text as incomplete", async () => {
    const { outcome, events, messages } = await play({
      script: [{ say: "so far and no further", delay_ms: 1 }],
      hooks: [limits({ seconds: 60 })],
      onEvent: hourAt("on_chat_model_stream"),
    });
    expect(outcome).toMatchObject(overtime);
    expect(textSeen(events)).toBe("so");
    expect(dataOf(events, "on_chat_model_end")[0]?.error?.message).toBe(spent);
    const message = "The run stopped after 1 minute (`budgets.seconds`). Send a message to continue.";
    expect(dataOf(events, "done")[0]).toMatchObject({ message, details: { message } });
    expect(messages.slice(1)).toMatchObject([{ role: "assistant", content: "so", incomplete: "failed" }]);
  });

  test("aborts running calls, and each gets its result", async () => {
    const { outcome, messages } = await play({
      script: [{ call: [{ tool: "endless" }, { tool: "work" }, { tool: "endless" }] }],
      tools: [endless(() => {}), nothing],
      hooks: [limits({ seconds: 60 }), made(timeout, { options: { tool: 7200 } })],
      onEvent: hourAt("on_tool_end"),
    });
    expect(outcome).toMatchObject(overtime);
    expect(unanswered(messages)).toEqual([]);
    const results = Object.fromEntries(
      toolMessages(messages).map(({ tool_call_id, content, error }) => [tool_call_id, error ?? content]),
    );
    expect(results).toEqual({ call_1_1: spent, call_1_2: "worked", call_1_3: spent });
  });

  test("includes the wait for the next attempt", async () => {
    const { outcome } = await play({
      script: [{ fail: { code: "model_overloaded", retry_after_ms: 50_000 } }, { say: "too late" }],
      hooks: [limits({ seconds: 60 }), made(retry)],
      onEvent: hourAt("warning"),
    });
    expect(outcome).toMatchObject(overtime);
  });

  test("starts once per run, even if another process takes the run over", async () => {
    const id = "run_before";
    const began = (run_id: string) => ({
      id,
      attempt: 2,
      state: new Map([["budgets", { run_id, began_at: new Date(Date.now() - 60_000).toISOString() }]]),
    });
    const hooks = () => [limits({ seconds: 30 })];
    expect((await play({ hooks: hooks(), input: began(id) })).outcome).toMatchObject(overtime);
    const { outcome, state } = await play({ hooks: hooks(), input: began("run_other") });
    expect(outcome.status).toBe("success");
    expect(state.get("budgets")).toMatchObject({ run_id: id });
  });

  test("prevents calls left by an earlier attempt from starting if no time is left", async () => {
    const first = await play({
      script: [{ call: [{ tool: "ask" }] }],
      tools: [plainTool("ask", () => interrupted())],
    });
    const id = "run_late";
    const { outcome, messages } = await play({
      say: null,
      tools: [plainTool("ask", () => "ran")],
      hooks: [limits({ seconds: 1 })],
      input: {
        ...{ id, attempt: 2, messages: first.messages },
        state: new Map([["budgets", { run_id: id, began_at: "2020-01-01T00:00:00.000Z" }]]),
      },
    });
    expect(outcome).toMatchObject(overtime);
    expect(toolMessages(messages)[0]?.error).toBe("The run has used up its 1 seconds.");
  });

  test("near the limit, the model is asked to finish", async () => {
    const { model, asked } = listening([{ say: "ok" }]);
    const input = {
      id: "run_1",
      state: new Map([
        ["budgets", { run_id: "run_1", began_at: new Date(Date.now() - 900_000).toISOString() }],
      ]),
    };
    await play({ model, hooks: [limits({ seconds: 1000 })], input });
    expect(remindersIn(asked[0])[0]).toMatch(/This run has used 9\d\d of its 1000 seconds\. Finish now/);
  });

  test("a cancelled run is cancelled, not out of time", async () => {
    const cancel = new AbortController();
    const { outcome } = await play({
      script: [{ say: "too late", delay_ms: 60_000 }],
      hooks: [limits({ seconds: 60 })],
      input: { signal: cancel.signal },
      onEvent: (event) => {
        if (event.event === "on_chat_model_start") cancel.abort();
        return hourAt("on_chat_model_end")(event);
      },
    });
    expect(outcome.status).toBe("cancelled");
  });

  test("no timer remains", async () => {
    await play({
      script: (r, call) => (call < 2 ? working(r) : { say: "ok" }),
      tools: [nothing],
      hooks: [limits({})],
    });
    expect(vi.getTimerCount()).toBe(0);
  });
});
