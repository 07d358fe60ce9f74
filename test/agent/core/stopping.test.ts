// Runs that are cancelled, interrupted or no longer read.

import { once } from "node:events";
import { describe, expect, test } from "vitest";
import type { Hook } from "../../../src/agent/core/hook.ts";
import { toolMessages, unanswered } from "../../../src/agent/core/message.ts";
import { plainTool, play } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";
import { leavingAt } from "../hooks/reader.ts";
import { echo, endless } from "./tools.ts";

describe("stopping", () => {
  test("cancelling during tool calls answers every call and closes every span", async () => {
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

  test("cancelling does not wait for a tool that ignores it", async () => {
    const controller = new AbortController();
    const deaf = plainTool("deaf", () => {
      controller.abort();
      return new Promise<string>(() => {});
    });
    const { outcome } = await play({
      tools: [deaf],
      input: { signal: controller.signal },
      script: [{ call: [{ tool: "deaf" }] }],
    });
    expect(outcome.status).toBe("cancelled");
  });

  test("cancelling while the model writes keeps the text, marked as incomplete", async () => {
    const controller = new AbortController();
    const { outcome, messages, events } = await play({
      input: { signal: controller.signal },
      script: [{ say: "a long story that is cut short", delay_ms: 1 }],
      onEvent: (event) => event.event === "on_chat_model_stream" && controller.abort(),
    });
    expect(outcome.status).toBe("cancelled");
    expect(dataOf(events, "on_chat_model_end")[0]?.error?.code).toBe("cancelled");
    const [, cut, ...more] = messages;
    expect(more).toEqual([]);
    expect(cut).toMatchObject({ role: "assistant", content: "a", incomplete: "stopped" });
    expect(cut?.id).toBe(dataOf(events, "on_chat_model_start")[0]?.message_id);
    expect(dataOf(events, "done")[0]?.message_id).toBe(cut?.id);
  });

  test("cancelling before the model has written anything leaves no message", async () => {
    const controller = new AbortController();
    const { messages } = await play({
      input: { signal: controller.signal },
      script: [{ think: "Let me think about it.", say: "never", delay_ms: 1 }],
      onEvent: (event) => event.event === "on_chat_model_stream" && controller.abort(),
    });
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

  test("a consumer that stops reading during a tool call leaves nothing running", async () => {
    let ended: unknown;
    const holder = plainTool("holder", async function* (_args, call, run) {
      run.signal.addEventListener("abort", () => (ended = "aborted"));
      yield { event: "on_tool_progress", name: "holder", data: { call_id: call.id, output: "." } };
      return new Promise<string>(() => {});
    });
    const onEvent = leavingAt("on_tool_progress");
    const reading = play({ tools: [holder], script: [{ call: [{ tool: "holder" }] }], onEvent });
    await expect(reading).rejects.toThrow("gone");
    expect(ended).toBe("aborted");
  });

  test.each([1, 2])(
    "a consumer that stops reading does not wait for the hooks around %i calls",
    async (count) => {
      const reporter = plainTool("reporter", async function* (_args, call) {
        yield { event: "on_tool_progress", name: "reporter", data: { call_id: call.id, output: "." } };
        return "";
      });
      const ends: string[] = [];
      const patient: Hook = {
        name: "patient",
        async *wrapToolCall(request, next) {
          try {
            return yield* next(request);
          } finally {
            if (!request.signal.aborted) await once(request.signal, "abort");
            ends.push(request.call.name);
          }
        },
      };
      const reading = play({
        tools: [reporter],
        hooks: [patient],
        script: [{ call: Array.from({ length: count }, () => ({ tool: "reporter" })) }],
        onEvent: leavingAt("on_tool_progress"),
      });
      await expect(reading).rejects.toThrow("gone");
      await expect.poll(() => ends).toHaveLength(count);
    },
  );
});
