import { describe, expect, test } from "vitest";
import type { TraceRecorder } from "../../../src/agent/core/tool.ts";
import { tracing } from "../../../src/agent/hooks/tracing.ts";
import { plainTool, play } from "../../support/agent.ts";
import { made } from "./made.ts";
import { endless, leavingAt } from "./reader.ts";

interface Kept {
  readonly name: string;
  readonly values: Record<string, unknown>;
  ended: number;
}

/** A recorder that keeps its spans. */
function recorder(): TraceRecorder & { readonly spans: Kept[] } {
  const spans: Kept[] = [];
  return {
    spans,
    startSpan(name, attributes) {
      const kept: Kept = { name, values: { ...attributes }, ended: 0 };
      spans.push(kept);
      const span = {
        set: (key: string, value: unknown) => {
          kept.values[key] = value;
          return span;
        },
        recordEvent: () => span,
        end: () => void kept.ended++,
      };
      return span;
    },
    recordEvent() {},
  };
}

const echo = plainTool("echo", ({ text }) => String(text));
const echoing = (text: string) => ({ call: [{ tool: "echo", args: { text } }] });

test("without a recorder, the hook has no layers", () => {
  expect(made(tracing)).toEqual({ name: "tracing" });
});

describe("a model call", () => {
  test("is a span with sizes, previews, usage and the time of the first token", async () => {
    const traces = recorder();
    const usage = { input_tokens: 12, output_tokens: 3 };
    await play({
      script: [{ say: "x".repeat(700), ...echoing("a"), usage }, { say: "done" }],
      tools: [echo],
      hooks: [made(tracing, { recorder: traces })],
    });
    const [first, second] = traces.spans.filter(({ name }) => name === "llm.call");
    expect(first).toMatchObject({
      ended: 1,
      values: {
        ...{ run_id: /^run_/, thread_id: /^th_/, model: "scripted:test", message_count: 1 },
        ...{ content_length: 700, content_preview: "x".repeat(500), usage, stop_reason: "tool_use" },
        ...{ tool_calls_count: 1, tool_names: ["echo"], time_to_first_token_ms: expect.any(Number) },
      },
    });
    expect(first?.values).not.toHaveProperty("error");
    expect(second).toMatchObject({ ended: 1, values: { message_count: 3, tool_calls_count: 0 } });
  });

  test("that fails has a span with the error", async () => {
    const traces = recorder();
    await play({
      script: [{ say: "a", fail: { code: "model_rejected", message: "No." } }],
      hooks: [made(tracing, { recorder: traces })],
    });
    expect(traces.spans).toMatchObject([{ ended: 1, values: { error: "model_rejected: No." } }]);
  });

  test("that is cancelled has a span that ended", async () => {
    const traces = recorder();
    const cancel = new AbortController();
    await play({
      script: [{ say: "one two", delay_ms: 1 }],
      hooks: [made(tracing, { recorder: traces })],
      input: { signal: cancel.signal },
      onEvent: ({ event }) => event === "on_chat_model_stream" && cancel.abort(),
    });
    expect(traces.spans).toMatchObject([{ ended: 1, values: { error: /^cancelled/ } }]);
  });

  test.each(["on_chat_model_start", "on_chat_model_stream"] as const)(
    "has a span that ended, and is released, if the reader leaves at %s",
    async (where) => {
      const traces = recorder();
      const { model, isClosed } = endless();
      const hooks = [made(tracing, { recorder: traces })];
      await expect(play({ model, hooks, onEvent: leavingAt(where) })).rejects.toThrow("gone");
      expect(traces.spans.map(({ ended }) => ended)).toEqual([1]);
      expect(isClosed()).toBe(where === "on_chat_model_stream");
    },
  );
});

describe("a tool call", () => {
  const callOf = async (script: Parameters<typeof play>[0]["script"], tools = [echo]) => {
    const traces = recorder();
    await play({ ...(script ? { script } : {}), tools, hooks: [made(tracing, { recorder: traces })] });
    return traces.spans.find(({ name }) => name === "tool.call");
  };

  test("has a span with shortened arguments and output", async () => {
    const span = await callOf([echoing("y".repeat(600)), { say: "ok" }]);
    expect(span).toMatchObject({
      ended: 1,
      values: {
        ...{ run_id: /^run_/, tool_name: "echo", tool_call_id: "call_1_1" },
        ...{ output_length: 600, output_preview: "y".repeat(500) },
      },
    });
    expect(span?.values.tool_args).toBe(JSON.stringify({ text: "y".repeat(600) }).slice(0, 500));
  });

  test("is never cut within a character in the preview", async () => {
    const span = await callOf([echoing(`${"y".repeat(499)}😀`), { say: "ok" }]);
    expect(String(span?.values.output_preview).isWellFormed()).toBe(true);
  });

  test("with malformed arguments shows them as the model wrote them", async () => {
    const span = await callOf([{ call: [{ tool: "echo", malformed: '{"text": ' }] }, { say: "ok" }]);
    expect(span?.values).toMatchObject({ tool_args: '{"text": ', error: /not a JSON object/ });
  });

  test("that throws has a span with the error", async () => {
    const broken = plainTool("echo", () => Promise.reject(Error("broken")));
    const span = await callOf([{ call: [{ tool: "echo" }] }, { say: "ok" }], [broken]);
    expect(span).toMatchObject({ ended: 1, values: { error: "broken" } });
  });

  test("has a span that ended if the reader leaves in the middle", async () => {
    const traces = recorder();
    const progress = plainTool("echo", async function* (_, call) {
      yield { event: "on_tool_progress", name: "echo", data: { call_id: call.id, output: "." } };
      return "";
    });
    const reading = play({
      script: [{ call: [{ tool: "echo" }] }],
      tools: [progress],
      hooks: [made(tracing, { recorder: traces })],
      onEvent: leavingAt("on_tool_progress"),
    });
    await expect(reading).rejects.toThrow("gone");
    await expect.poll(() => traces.spans.map(({ ended }) => ended)).toEqual([1, 1]);
  });
});
