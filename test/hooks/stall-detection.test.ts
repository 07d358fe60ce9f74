import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool, failed } from "../../src/core/tool.ts";
import { stallDetection } from "../../src/hooks/self-control.ts";
import type { Turn } from "../../src/models/scripted.ts";
import { type Play, play } from "../support/agent.ts";
import { dataOf } from "../support/drain.ts";
import { listening, remindersIn } from "./listening.ts";
import { made } from "./made.ts";

let calls = 0;
const look = defineTool({
  ...{ name: "look", description: "", parameters: z.object({ nth: z.int(), says: z.string() }) },
  execute: ({ says }) => (says === "" ? failed("Not found.") : says),
});
/** Each call has arguments of its own. */
const looking = (says: string): Turn => ({ call: [{ tool: "look", args: { nth: calls++, says } }] });

async function run(said: string[], { options = {}, ...more }: Play & { options?: object } = {}) {
  const { model, asked } = listening([...said.map(looking), { say: "ok" }]);
  const hooks = [made(stallDetection, { options: { ...options } })];
  const played = await play({ model, hooks, tools: [look], maxIterations: 0, ...more });
  return { ...played, asked, counts: asked.map((request) => remindersIn(request).length) };
}

const same = (count: number) => Array.from({ length: count }, () => "nothing");

test("different calls with the same results remind the model and later end the run", async () => {
  const { outcome, counts, events, asked, messages } = await run(same(20));
  expect(counts).toEqual([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
  expect(remindersIn(asked[6])[0]).toContain("The last 6 results say nothing new. Step back:");
  expect(dataOf(events, "warning")).toEqual([
    { code: "stalled", message: "The last 6 results say nothing new." },
  ]);
  expect(outcome).toEqual({ status: "error", stop_reason: "loop_detected" });
  expect(JSON.stringify(messages)).not.toContain("reminder");
});

test("a repeated error counts as a stall", async () => {
  expect((await run(Array(20).fill(""))).outcome).toEqual({ status: "error", stop_reason: "loop_detected" });
});

test("a model that makes progress after a reminder continues, and is reminded again at the next stall", async () => {
  const { outcome, counts } = await run([...same(6), "a", "b", "c", ...same(9)]);
  expect(outcome.status).toBe("success");
  expect(counts.at(6)).toBe(1);
  expect(counts.at(10)).toBe(1);
  expect(counts.at(-1)).toBe(2);
});

test("results of which some are new are progress", async () => {
  const { outcome, counts } = await run(["a", "a", "b", "b", "c", "c", "d", "d", "e", "e", "f", "f"]);
  expect(outcome.status).toBe("success");
  expect(Math.max(...counts)).toBe(0);
});

test("what happened before the user spoke does not count", async () => {
  const { messages } = await run(same(5));
  const { counts } = await run(same(5), { input: { messages }, say: "Once more." });
  expect(Math.max(...counts)).toBe(0);
});

test("how many results are compared is a setting", async () => {
  expect((await run(same(3), { options: { window: 2, alike: 0.5 } })).counts).toEqual([0, 0, 1, 1]);
});
