// The hooks that remind a model of what it should do: stalls, failures, open todos.

import { describe, expect, test } from "vitest";
import { failed } from "../../../../src/agent/core/tool.ts";
import {
  failureReflection,
  progressReminder,
  slidingWindow,
  stallDetection,
} from "../../../../src/agent/hooks/extra-hooks.ts";
import { todos } from "../../../../src/agent/hooks/todos.ts";
import type { Turn } from "../../../../src/agent/models/scripted.ts";
import { type Play, plainTool, play } from "../../../support/agent.ts";
import { dataOf } from "../../../support/drain.ts";
import { listening, remindersIn, sharedStart } from "../listening.ts";
import { made } from "../made.ts";

await stallDetection.load?.();
await failureReflection.load?.();
await progressReminder.load?.();
await slidingWindow.load?.();

describe("stall_detection", () => {
  let calls = 0;
  const look = plainTool("look", ({ says }) => (says === "" ? failed("Not found.") : String(says)));
  /** Each call has arguments of its own. */
  const looking = (says: string): Turn => ({ call: [{ tool: "look", args: { nth: calls++, says } }] });

  async function run(said: string[], { options = {}, ...more }: Play & { options?: object } = {}) {
    const { model, asked } = listening([...said.map(looking), { say: "ok" }]);
    const hooks = [made(stallDetection, { options: { ...options } })];
    const played = await play({ model, hooks, tools: [look], maxIterations: 0, ...more });
    return { ...played, asked, counts: asked.map((request) => remindersIn(request).length) };
  }

  const same = (count: number) => Array.from({ length: count }, () => "nothing");

  test("different calls with the same results cause a reminder and later end the run", async () => {
    const { outcome, counts, events, asked, messages } = await run(same(20));
    expect(counts).toEqual([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
    expect(remindersIn(asked[6])[0]).toContain("The last 6 results contain nothing new. Step back.");
    expect(dataOf(events, "warning")).toEqual([
      { code: "stalled", message: "The last 6 results contain nothing new." },
    ]);
    expect(outcome).toMatchObject({ status: "error", stop_reason: "loop_detected" });
    expect(JSON.stringify(messages)).not.toContain("reminder");
  });

  test("a repeated error counts as a stall", async () => {
    expect((await run(Array(20).fill(""))).outcome).toMatchObject({
      status: "error",
      stop_reason: "loop_detected",
    });
  });

  test("after progress, a reminded model continues and is reminded again at the next stall", async () => {
    const { outcome, counts } = await run([...same(6), "a", "b", "c", ...same(9)]);
    expect(outcome.status).toBe("success");
    expect(counts.at(6)).toBe(1);
    expect(counts.at(10)).toBe(1);
    expect(counts.at(-1)).toBe(2);
  });

  test("results count as progress if some of them are new", async () => {
    const { outcome, counts } = await run(["a", "a", "b", "b", "c", "c", "d", "d", "e", "e", "f", "f"]);
    expect(outcome.status).toBe("success");
    expect(Math.max(...counts)).toBe(0);
  });

  test("results before the user's last message do not count", async () => {
    const { messages } = await run(same(5));
    const { counts } = await run(same(5), { input: { messages }, say: "Once more." });
    expect(Math.max(...counts)).toBe(0);
  });

  test("the number of compared results is configurable", async () => {
    expect((await run(same(3), { options: { window: 2, alike: 0.5 } })).counts).toEqual([0, 0, 1, 1]);
  });
});

describe("failure_reflection", () => {
  const tool = plainTool("work", ({ ok }) => (ok ? "done" : failed("no such file")));
  /** One step; each letter is a call, and `x` one that fails. */
  const step = (calls: string): Turn => ({
    call: [...calls].map((call) => ({ tool: "work", args: { ok: call !== "x" } })),
  });

  async function asked(steps: string[], { options = {}, ...more }: Play & { options?: object } = {}) {
    const { model, asked } = listening(steps.map(step));
    const hooks = [made(failureReflection, { options: { ...options } })];
    const { messages } = await play({ model, hooks, tools: [tool], ...more });
    return { asked, messages, counts: asked.map((request) => remindersIn(request).length) };
  }

  test("a model whose steps fail is asked to reflect, then again only after another failure", async () => {
    const { asked: requests, counts, messages } = await asked(["x", "x", "x", ".", "x", "x"]);
    expect(counts).toEqual([0, 0, 1, 2, 2, 2, 3]);
    expect(remindersIn(requests[2])[0]).toMatch(
      /^<reminder>\nYour last 2 steps have failed\. .*what went wrong/,
    );
    expect(remindersIn(requests[3])[1]).toContain("Your last 3 steps have failed.");
    expect(remindersIn(requests[6])[2]).toContain("Your last 2 steps have failed.");
    expect(JSON.stringify(messages)).not.toContain("reminder");
  });

  test("a step with several calls fails if all of them fail", async () => {
    expect((await asked(["xx", "x.", "xx", "xxx"])).counts).toEqual([0, 0, 0, 0, 1]);
  });

  test("failures before the user's last message do not count", async () => {
    const { messages } = await asked(["x"]);
    const input = { messages: messages.slice(0, -1) };
    expect((await asked(["x"], { input, say: "Try again." })).counts).toEqual([0, 0]);
    expect((await asked(["x"], { input, say: null })).counts).toEqual([0, 1]);
  });

  test("one failure is enough if configured", async () => {
    const { asked: requests } = await asked(["x"], { options: { after: 1 } });
    expect(remindersIn(requests[1])[0]).toContain("Your last step has failed.");
  });

  test("each request begins like the previous one, and windows consider only the conversation", async () => {
    const { model, asked } = listening(Array.from({ length: 8 }, () => step("x")));
    const hooks = [made(failureReflection), made(slidingWindow, { options: { max_messages: 4 } })];
    await play({ model, hooks, tools: [tool] });
    expect(remindersIn(asked.at(-1))).toHaveLength(7);
    for (const [nth, request] of asked.entries())
      if (nth > 0) expect(sharedStart(asked[nth - 1], request)).toBe(asked[nth - 1]?.messages.length);
  });
});

describe("progress_reminder", () => {
  const work: Turn = { call: [{ tool: "work" }] };
  const plan = (status: string): Turn => ({
    call: [{ tool: "write_todos", args: { todos: [{ id: "1", title: "Paint the door", status }] } }],
  });

  interface Case extends Play {
    options?: Record<string, unknown>;
    max?: number;
  }

  /** What the model was asked in a run that plays `turns`. */
  async function asked(turns: Turn[], { options = {}, max = 0, ...more }: Case = {}) {
    const { model, asked } = listening(turns);
    const reminder = made(progressReminder, { options, agent: { max_iterations: max } });
    const hooks = [made(todos), reminder];
    const { messages } = await play({
      model,
      hooks,
      tools: [plainTool("work")],
      maxIterations: max,
      ...more,
    });
    return { asked, messages, counts: asked.map((request) => remindersIn(request).length) };
  }

  const repeated = (turn: Turn, count: number) => Array.from({ length: count }, () => turn);

  test("the model is reminded of open todos after five steps without a change", async () => {
    const { asked: requests, counts, messages } = await asked([plan("pending"), ...repeated(work, 5)]);
    expect(counts).toEqual([0, 0, 0, 0, 0, 0, 1]);
    expect(remindersIn(requests.at(-1))[0]).toMatch(
      /^<reminder>\nYou have taken 5 steps since you last updated your plan\.\n.*:\n- Paint the door\n.*write_todos/,
    );
    expect(JSON.stringify(messages)).not.toContain("reminder");
  });

  test("changing the todos delays the reminder; a failed change does not", async () => {
    const options = { every: 2 };
    const changing = [work, plan("pending"), work, plan("done"), work];
    expect((await asked(changing, { options })).counts).toEqual([0, 0, 0, 0, 0, 0]);
    expect((await asked([work, plan("nonsense"), work], { options })).counts).toEqual([0, 0, 1, 1]);
  });

  test("if there is no plan, the model is asked whether it needs one", async () => {
    const { asked: requests } = await asked(repeated(work, 5));
    expect(remindersIn(requests.at(-1))[0]).toContain("If much work is left, plan it with write_todos");
  });

  test("without todos, the reminder mentions only notes, if there are any", async () => {
    const reminder = () => [made(progressReminder)];
    expect((await asked(repeated(work, 5), { hooks: [] })).counts.at(-1)).toBe(0);
    const { model, asked: alone } = listening(repeated(work, 5));
    await play({ model, hooks: reminder(), tools: [plainTool("work")] });
    expect(remindersIn(alone.at(-1))).toEqual([]);
    const { model: writer, asked: noting } = listening(repeated(work, 5));
    await play({ model: writer, hooks: reminder(), tools: [plainTool("work"), plainTool("write_note")] });
    expect(remindersIn(noting.at(-1))[0]).toMatch(
      /5 steps since you last updated your plan\.\nUse write_note to record/,
    );
  });

  test("near max_iterations, the model sees how many calls remain, and which one is the last", async () => {
    const { asked: requests, counts } = await asked(repeated(work, 8), { max: 6, options: { every: 100 } });
    expect(counts).toEqual([0, 0, 0, 1, 1, 2]);
    expect(remindersIn(requests[3])[0]).toContain(
      "You can give 3 more answers in this run, including this one.",
    );
    expect(remindersIn(requests[5])[1]).toContain("This is your last answer in this run");
  });

  test("a run without a limit gets no such reminder, and neither does one with 0", async () => {
    const options = { every: 100 };
    expect((await asked(repeated(work, 4), { max: 0, options })).counts).toEqual([0, 0, 0, 0, 0]);
    expect((await asked(repeated(work, 8), { max: 3, options: { ...options, last: 0 } })).counts).toEqual([
      0, 0, 0,
    ]);
  });

  test("reminders keep their position, and at most twenty are shown", async () => {
    const { asked: requests, counts } = await asked(repeated(work, 25), { options: { every: 1 } });
    expect(counts.slice(0, 3)).toEqual([0, 1, 2]);
    expect(Math.max(...counts)).toBe(20);
    for (let nth = 1; nth <= 20; nth++)
      expect(sharedStart(requests[nth - 1], requests[nth])).toBe(requests[nth - 1]?.messages.length);
  });

  test("a resumed run includes the earlier steps in its count", async () => {
    const before = await play({
      script: [...repeated(work, 4), { say: "so far" }],
      hooks: [made(todos)],
      tools: [plainTool("work")],
    });
    const messages = before.messages.slice(0, -1);
    const { counts } = await asked([work], { say: null, input: { messages, attempt: 2 } });
    expect(counts).toEqual([0, 1]);
  });
});
