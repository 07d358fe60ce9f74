// The tool calls of one message: side by side, failing, waiting.

import { describe, expect, test } from "vitest";
import { abortRun } from "../../../src/agent/core/errors.ts";
import { toolMessages, unanswered } from "../../../src/agent/core/message.ts";
import { interrupted } from "../../../src/agent/core/tool.ts";
import { plainTool, play } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";
import { echo, endless } from "./tools.ts";

describe("tool calls of one message", () => {
  test("run in parallel, and each result is added to the thread as soon as it is known", async () => {
    const order: string[] = [];
    let releaseSlow = () => {};
    const slow = plainTool("slow", async () => {
      await new Promise<void>((resolve) => (releaseSlow = resolve));
      return "slow";
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

  test("are limited to sixteen at a time", async () => {
    let now = 0;
    let most = 0;
    const count = plainTool("count", async () => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setImmediate(resolve));
      now--;
      return "";
    });
    const call = Array.from({ length: 50 }, () => ({ tool: "count" }));
    const { messages } = await play({ tools: [count], script: [{ call }, { say: "ok" }] });
    expect(toolMessages(messages)).toHaveLength(50);
    expect(most).toBe(16);
  });

  test("report failures to the model, and the loop continues", async () => {
    const broken = plainTool("broken", () => {
      throw new Error("no such planet");
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
    ["arguments that do not fit", { tool: "echo", args: { text: ["a"] } }, /text: .*string/],
    [
      "arguments that are not JSON",
      { tool: "echo", malformed: '{"text": "a' },
      /not valid JSON: Unterminated string/,
    ],
    [
      "several objects as arguments",
      { tool: "echo", malformed: '{"a":1}{"b":2}' },
      /contain 2 different JSON values, not one/,
    ],
    ["a list as arguments", { tool: "echo", malformed: "[1]" }, /are a list, not a JSON object/],
    ["arguments that were cut off", { tool: "echo", malformed: "" }, /the reply ended before them/],
  ])("with %s return an error that the model can learn from", async (_, call, message) => {
    const { messages } = await play({ tools: [echo], script: [{ call: [call] }, { say: "sorry" }] });
    expect(toolMessages(messages)[0]?.error).toMatch(message);
  });

  test.each([" echo", "Echo", "functions.echo", "default_api:echo", "echo<|channel|>commentary"])(
    "reach the intended tool by the name `%s`",
    async (tool) => {
      const { messages } = await play({
        tools: [echo],
        script: [{ call: [{ tool, args: { text: "hi" } }] }, { say: "ok" }],
      });
      expect(toolMessages(messages)).toMatchObject([{ name: "echo", content: "echo: hi" }]);
    },
  );

  test("reach no tool by a name that two tools could have", async () => {
    const { messages } = await play({
      tools: [plainTool("list_all"), plainTool("list-all")],
      script: [{ call: [{ tool: "List_All" }] }, { say: "ok" }],
    });
    expect(toolMessages(messages)).toMatchObject([{ name: "List_All", error: /no tool `List_All`/ }]);
  });

  test("that share an id are kept separate", async () => {
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
    const asking = { tool: "ask", id: "a" };
    const { messages, outcome, events } = await play({
      tools: [plainTool("ask", () => interrupted()), echo],
      script: [{ call: [asking, { tool: "echo", args: { text: "x" } }] }],
    });
    expect(outcome).toMatchObject({ status: "interrupted", calls: [{ id: "a" }] });
    expect(dataOf(events, "done")[0]?.status).toBe("interrupted");
    expect(unanswered(messages).map((call) => call.id)).toEqual(["a"]);
    expect(dataOf(events, "on_tool_end").find((end) => end.call_id === "a")?.interrupted).toBe(true);
  });

  test("end the run if one of them requests it, and the others are answered", async () => {
    const abort = plainTool("abort", () => {
      throw abortRun("The disk is on fire.");
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
