// Runs that continue with the unanswered calls of a thread, and messages that arrive while they work.

import { describe, expect, test } from "vitest";
import type { Hook } from "../../../src/agent/core/hook.ts";
import { conversation, lastContent, toolMessages, userMessage } from "../../../src/agent/core/message.ts";
import { plainTool, play } from "../../support/agent.ts";
import { dataOf, names } from "../../support/drain.ts";
import { echo } from "./tools.ts";

describe("resuming", () => {
  const open = conversation()
    .user("go")
    .assistant("", { id: "c1", name: "echo", args: { text: "late" } }).messages;

  test("a resumed run executes the unanswered calls, then calls the model", async () => {
    const { messages } = await play({
      tools: [echo],
      say: null,
      input: { messages: open },
      script: (request) => ({ say: `saw ${lastContent(request.messages)}` }),
    });
    expect(lastContent(messages)).toBe("saw echo: late");
  });

  test("a new message on a thread with unanswered calls first answers them as interrupted", async () => {
    const { messages } = await play({ tools: [echo], say: "never mind", input: { messages: open } });
    expect(messages.map((m) => m.role)).toEqual(["user", "assistant", "tool", "user", "assistant"]);
    expect(toolMessages(messages)[0]?.error).toMatch(/Interrupted/);
  });

  test("a resumed run with nothing to do ends immediately", async () => {
    const { messages } = conversation().user("2+2?").assistant("4");
    const { events, outcome } = await play({ say: null, input: { messages } });
    expect(names(events)).toEqual(["run_start", "done"]);
    expect(outcome).toMatchObject({ status: "success", message: { content: "4" } });
  });

  test("a resumed run warns about an answer to a closed interrupt", async () => {
    const { messages } = conversation().user("2+2?").assistant("4");
    const answers = [{ id: "approval_c1", decision: "approve" as const }];
    const { events } = await play({ say: null, input: { messages, answers } });
    expect(dataOf(events, "warning")).toMatchObject([{ code: "interrupt_closed" }]);
    // After a crash, its own first attempt has closed it.
    const again = await play({ say: null, input: { messages, answers, attempt: 2 } });
    expect(dataOf(again.events, "warning")).toEqual([]);
  });

  test("a run that is cancelled before it begins answers the waiting calls and does nothing else", async () => {
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

  test("a message that the thread already contains is not added again", async () => {
    const message = userMessage("once");
    const { messages, events } = await play({
      input: { messages: [message], input: [message], attempt: 2 },
      say: null,
    });
    expect(messages.filter((m) => m.role === "user")).toHaveLength(1);
    expect(events[0]).toEqual({ event: "run_resumed", data: { attempt: 2 } });
  });

  test("after a crash, a call that had started is repeated only if that is harmless", async () => {
    const ran: string[] = [];
    const done = (_: unknown, { name }: { name: string }) => {
      ran.push(name);
      return "done";
    };
    const calls = ["safe", "pay", "pay", "look"].map((name, at) => ({ id: `c${at + 1}`, name, args: {} }));
    const crashed = conversation()
      .user("go")
      .assistant("", ...calls).messages;
    const { messages } = await play({
      tools: [
        plainTool("safe", done, { idempotent: true }),
        plainTool("look", done, { readOnly: true }),
        plainTool("pay", done),
      ],
      say: null,
      input: { messages: crashed, begun: new Set(["c1", "c2", "c4"]) },
    });
    expect(ran).toEqual(["safe", "pay", "look"]);
    expect(toolMessages(messages).find((m) => m.tool_call_id === "c2")?.error).toMatch(/Outcome unknown/);
    expect(toolMessages(messages).find((m) => m.tool_call_id === "c3")?.content).toBe("done");
  });

  test("after a crash, a call that had started is never reported as not run, even if the run is cancelled", async () => {
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

  test("messages sent to a run in progress are added once, before the next model call", async () => {
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
