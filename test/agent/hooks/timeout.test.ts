import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { abortRun } from "../../../src/agent/core/errors.ts";
import { toolMessages } from "../../../src/agent/core/message.ts";
import type { MaybeStream } from "../../../src/agent/core/stream.ts";
import { interrupted, type Run, type ToolResult } from "../../../src/agent/core/tool.ts";
import { retry } from "../../../src/agent/hooks/retry.ts";
import { DELEGATES } from "../../../src/agent/hooks/subagents/tools.ts";
import { timeout } from "../../../src/agent/hooks/timeout.ts";
import { type Play, plainTool, play } from "../../support/agent.ts";
import { dataOf, textSeen } from "../../support/drain.ts";
import { made } from "./made.ts";
import { endless, leavingAt } from "./reader.ts";

const limits = (options: { tool?: number; model?: number }) => made(timeout, { options });

describe("a tool call", () => {
  const calling = (execute: (run: Run) => MaybeStream<ToolResult | string>, more: Play = {}) =>
    play({
      script: [{ call: [{ tool: "slow" }] }, { say: "ok" }],
      tools: [plainTool("slow", (_args, _call, run) => execute(run))],
      hooks: [limits({ tool: 0.02 })],
      ...more,
    });
  const aborted = ({ signal }: Run) =>
    new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));

  test("that takes too long is aborted, and its result is an error", async () => {
    const { messages, outcome } = await calling(async (run) => {
      await aborted(run);
      throw run.signal.reason;
    });
    expect(toolMessages(messages)[0]).toMatchObject({ error: "Timed out after 0.02 s.", content: "" });
    expect(outcome.status).toBe("success");
  });

  test("that ignores the signal is abandoned", async () => {
    const { messages } = await calling(() => new Promise(() => {}));
    expect(toolMessages(messages)[0]?.error).toBe("Timed out after 0.02 s.");
  });

  test("keeps the tool's last output", async () => {
    const { messages } = await calling(async (run) => {
      await aborted(run);
      return "half of it";
    });
    expect(toolMessages(messages)[0]).toMatchObject({
      error: "Timed out after 0.02 s.",
      content: "half of it",
    });
  });

  test("that suspends the run at the end is still suspended", async () => {
    const { outcome } = await calling(async (run) => {
      await aborted(run);
      return interrupted();
    });
    expect(outcome.status).toBe("interrupted");
  });

  test("that ends the run at the end is still obeyed", async () => {
    const { outcome } = await calling(async (run) => {
      await aborted(run);
      throw abortRun("Enough.");
    });
    expect(outcome).toMatchObject({ status: "error", error: { code: "run_aborted" } });
  });

  test("that waits for other agents can take as long as they do", async () => {
    const work = async (_args: unknown, _call: unknown, { signal }: Run) => {
      await sleep(60, undefined, { signal });
      return "They are done.";
    };
    const delegate = plainTool("slow", work, DELEGATES);
    const { messages } = await calling(() => "", { tools: [delegate] });
    expect(toolMessages(messages)).toMatchObject([{ content: "They are done." }]);
    expect(toolMessages(messages)[0]).not.toHaveProperty("error");
  });

  test("that is quick is not affected, and no timer remains", async () => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    const left: number[] = [];
    for (let repeats = 0; repeats < 5; repeats++) {
      const before = timers();
      const { messages } = await calling(() => "quick", { hooks: [limits({})] });
      expect(toolMessages(messages)[0]).toMatchObject({ content: "quick" });
      expect(toolMessages(messages)[0]).not.toHaveProperty("error");
      left.push(timers() - before);
    }
    // Timers of others can end during a call, but hardly during each.
    expect(Math.max(...left)).toBeLessThanOrEqual(0);
  });

  test("of a cancelled run is cancelled, not timed out", async () => {
    const cancel = new AbortController();
    const { messages, outcome } = await calling(() => new Promise(() => {}), {
      hooks: [limits({})],
      input: { signal: cancel.signal },
      onEvent: ({ event }) => event === "on_tool_start" && cancel.abort(),
    });
    expect(outcome.status).toBe("cancelled");
    expect(toolMessages(messages)[0]?.error).toBe("Cancelled before it finished.");
  });
});

describe("a model", () => {
  test("that is silent is abandoned with model_timeout", async () => {
    const { outcome, events } = await play({
      script: [{ say: "too late", delay_ms: 60_000 }],
      hooks: [limits({ model: 0.02 })],
    });
    expect(outcome).toMatchObject({ status: "error", error: { code: "model_timeout" } });
    expect(dataOf(events, "on_chat_model_end")[0]?.error?.code).toBe("model_timeout");
  });

  test("that is silent is called again by retry", async () => {
    const { messages } = await play({
      script: (_, call) => (call === 0 ? { say: "never", delay_ms: 60_000 } : { say: "there" }),
      hooks: [made(retry, { options: { base_ms: 1 } }), limits({ model: 0.02 })],
    });
    expect(messages.at(-1)?.content).toBe("there");
  });

  test("can write for longer than it can be silent", async () => {
    const say = Array.from({ length: 30 }, (_, word) => `word${word}`).join(" ");
    const { events } = await play({ script: [{ say, delay_ms: 25 }], hooks: [limits({ model: 0.5 })] });
    expect(textSeen(events)).toBe(say);
  });

  test("is not affected by a slow reader", async () => {
    const { outcome } = await play({
      script: [{ say: "one two", delay_ms: 1 }],
      hooks: [limits({ model: 0.05 })],
      onEvent: ({ event }) => (event === "on_chat_model_stream" ? sleep(150) : undefined),
    });
    expect(outcome.status).toBe("success");
  });

  test("is released when the reader leaves", async () => {
    const { model, isClosed } = endless();
    await expect(
      play({ model, hooks: [limits({})], onEvent: leavingAt("on_chat_model_stream") }),
    ).rejects.toThrow("gone");
    expect(isClosed()).toBe(true);
  });

  test("of a cancelled run is cancelled, not timed out", async () => {
    const cancel = new AbortController();
    const { outcome } = await play({
      script: [{ say: "too late", delay_ms: 60_000 }],
      hooks: [limits({})],
      input: { signal: cancel.signal },
      onEvent: ({ event }) => event === "on_chat_model_start" && setImmediate(() => cancel.abort()),
    });
    expect(outcome.status).toBe("cancelled");
  });
});
