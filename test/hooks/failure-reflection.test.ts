import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool, failed } from "../../src/core/tool.ts";
import { failureReflection } from "../../src/hooks/self-control.ts";
import { slidingWindow } from "../../src/hooks/trimming.ts";
import type { Turn } from "../../src/models/scripted.ts";
import { type Play, play } from "../support/agent.ts";
import { listening, remindersIn, sharedStart } from "./listening.ts";
import { made } from "./made.ts";

const tool = defineTool({
  ...{ name: "work", description: "", parameters: z.object({ ok: z.boolean() }) },
  execute: ({ ok }) => (ok ? "done" : failed("no such file")),
});
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

test("a model whose steps fail is asked to reflect, and again only when one more fails", async () => {
  const { asked: requests, counts, messages } = await asked(["x", "x", "x", ".", "x", "x"]);
  expect(counts).toEqual([0, 0, 1, 2, 2, 2, 3]);
  expect(remindersIn(requests[2])[0]).toMatch(
    /^<reminder>\nYour last 2 steps have failed\. .*what went wrong/,
  );
  expect(remindersIn(requests[3])[1]).toContain("Your last 3 steps have failed.");
  expect(remindersIn(requests[6])[2]).toContain("Your last 2 steps have failed.");
  expect(JSON.stringify(messages)).not.toContain("reminder");
});

test("a step of several calls fails when all of them do", async () => {
  expect((await asked(["xx", "x.", "xx", "xxx"])).counts).toEqual([0, 0, 0, 0, 1]);
});

test("what failed before the user spoke does not count", async () => {
  const { messages } = await asked(["x"]);
  const input = { messages: messages.slice(0, -1) };
  expect((await asked(["x"], { input, say: "Try again." })).counts).toEqual([0, 0]);
  expect((await asked(["x"], { input, say: null })).counts).toEqual([0, 1]);
});

test("one failure is enough where that is asked for", async () => {
  const { asked: requests } = await asked(["x"], { options: { after: 1 } });
  expect(remindersIn(requests[1])[0]).toContain("Your last step has failed.");
});

test("each request begins as the one before did, and a window goes by the conversation alone", async () => {
  const { model, asked } = listening(Array.from({ length: 8 }, () => step("x")));
  const hooks = [made(failureReflection), made(slidingWindow, { options: { max_messages: 4 } })];
  await play({ model, hooks, tools: [tool] });
  expect(remindersIn(asked.at(-1))).toHaveLength(7);
  for (const [nth, request] of asked.entries())
    if (nth > 0) expect(sharedStart(asked[nth - 1], request)).toBe(asked[nth - 1]?.messages.length);
});
