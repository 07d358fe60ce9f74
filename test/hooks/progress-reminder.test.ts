import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/core/tool.ts";
import { progressReminder } from "../../src/hooks/self-control.ts";
import { todos } from "../../src/hooks/todos.ts";
import type { Turn } from "../../src/models/scripted.ts";
import { type Play, play } from "../support/agent.ts";
import { listening, remindersIn, sharedStart } from "./listening.ts";
import { made } from "./made.ts";

const tool = (name: string) =>
  defineTool({ ...{ name, description: "", parameters: z.object({}) }, execute: () => "done" });
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
  const { messages } = await play({ model, hooks, tools: [tool("work")], maxIterations: max, ...more });
  return { asked, messages, counts: asked.map((request) => remindersIn(request).length) };
}

const repeated = (turn: Turn, count: number) => Array.from({ length: count }, () => turn);

test("the model is reminded of open todos that have not changed for five steps", async () => {
  const { asked: requests, counts, messages } = await asked([plan("pending"), ...repeated(work, 5)]);
  expect(counts).toEqual([0, 0, 0, 0, 0, 0, 1]);
  expect(remindersIn(requests.at(-1))[0]).toBe(
    [
      "<reminder>",
      "You have taken 5 steps since you last took stock.",
      "Still open in your todos:",
      "- Paint the door",
      "Bring them up to date with write_todos, and continue with what is open.",
      "</reminder>",
    ].join("\n"),
  );
  expect(JSON.stringify(messages)).not.toContain("reminder");
});

test("a change of the todos puts it off; one that failed does not", async () => {
  const options = { every: 2 };
  const changing = [work, plan("pending"), work, plan("done"), work];
  expect((await asked(changing, { options })).counts).toEqual([0, 0, 0, 0, 0, 0]);
  expect((await asked([work, plan("nonsense"), work], { options })).counts).toEqual([0, 0, 1, 1]);
});

test("without a plan the model is asked whether it needs one", async () => {
  const { asked: requests } = await asked(repeated(work, 5));
  expect(remindersIn(requests.at(-1))[0]).toContain("If much is left to do, plan it with write_todos");
});

test("without todos there is no reminder of them; where there are notes, it is of these", async () => {
  const reminder = () => [made(progressReminder)];
  expect((await asked(repeated(work, 5), { hooks: [] })).counts.at(-1)).toBe(0);
  const { model, asked: alone } = listening(repeated(work, 5));
  await play({ model, hooks: reminder(), tools: [tool("work")] });
  expect(remindersIn(alone.at(-1))).toEqual([]);
  const { model: writer, asked: noting } = listening(repeated(work, 5));
  await play({ model: writer, hooks: reminder(), tools: [tool("work"), tool("write_note")] });
  expect(remindersIn(noting.at(-1))[0]).toMatch(
    /5 steps since you last took stock\.\nKeep what .* write_note/,
  );
});

test("near max_iterations the model reads how many calls are left, and which is the last", async () => {
  const { asked: requests, counts } = await asked(repeated(work, 8), { max: 6, options: { every: 100 } });
  expect(counts).toEqual([0, 0, 0, 1, 1, 2]);
  expect(remindersIn(requests[3])[0]).toContain(
    "You can give 3 more answers in this run, this one included.",
  );
  expect(remindersIn(requests[5])[1]).toContain("This is the last answer that you can give in this run");
});

test("a run without a limit has no end to be told of, and 0 keeps it quiet", async () => {
  const options = { every: 100 };
  expect((await asked(repeated(work, 4), { max: 0, options })).counts).toEqual([0, 0, 0, 0, 0]);
  expect((await asked(repeated(work, 8), { max: 3, options: { ...options, last: 0 } })).counts).toEqual([
    0, 0, 0,
  ]);
});

test("what was said stays where it was, and no more than twenty are shown", async () => {
  const { asked: requests, counts } = await asked(repeated(work, 25), { options: { every: 1 } });
  expect(counts.slice(0, 3)).toEqual([0, 1, 2]);
  expect(Math.max(...counts)).toBe(20);
  for (let nth = 1; nth <= 20; nth++)
    expect(sharedStart(requests[nth - 1], requests[nth])).toBe(requests[nth - 1]?.messages.length);
});

test("a run that is resumed counts the steps of before", async () => {
  const before = await play({
    script: [...repeated(work, 4), { say: "so far" }],
    hooks: [made(todos)],
    tools: [tool("work")],
  });
  const messages = before.messages.slice(0, -1);
  const { counts } = await asked([work], { say: null, input: { messages, attempt: 2 } });
  expect(counts).toEqual([0, 1]);
});
