import { describe, expect, test } from "vitest";
import { z } from "zod";
import { askFor } from "../../src/core/interrupts.ts";
import { userMessage } from "../../src/core/message.ts";
import { toolMessages } from "../../src/core/messages.ts";
import type { RunRecord, Stores } from "../../src/core/stores.ts";
import { defineTool, done, interrupted } from "../../src/core/tool.ts";
import type { Script, Turn } from "../../src/models/scripted.ts";
import { createMemoryStores } from "../../src/stores/memory/index.ts";
import { ADA } from "../stores/fixture.ts";
import { gate } from "../support/gate.ts";
import { managed, sqliteStores } from "./managed.ts";

const ask = defineTool({
  name: "ask",
  description: "Asks.",
  parameters: z.object({}),
  async *execute(_args, call, run) {
    const answer = yield* askFor({ call, kind: "question", prompt: "Well?" }, run);
    return answer ? done(answer.message ?? "") : interrupted();
  },
});
const asking = { call: [{ tool: "ask", id: "c1" }] };
const answers = [{ id: "question_c1", decision: "respond" as const, message: "well" }];

const statusOf = async ({ threads }: Stores, { thread_id }: RunRecord) =>
  (await threads.get(ADA, thread_id))?.status;

describe.each([
  ["in memory", async () => createMemoryStores()],
  ["in the database", () => sqliteStores()],
])("a run that waits, %s", (_, open) => {
  const waiting = async (script: readonly Turn[] | Script = [asking, { say: "Good." }], more = {}) => {
    const stores = await open();
    const { runs, start } = managed(stores, { script, tools: [ask], ...more });
    const run = await start(ADA);
    await expect.poll(() => statusOf(stores, run)).toBe("interrupted");
    return { stores, runs, run, key: { thread_id: run.thread_id, run_id: run.id } };
  };

  test("goes on once, however often the answer is given at once", async () => {
    const { stores, runs, run, key } = await waiting();
    const all = await Promise.allSettled([1, 2, 3, 4].map(() => runs.resume(ADA, { ...key, answers })));
    const codes = all.flatMap((each) => (each.status === "rejected" ? [each.reason.code] : []));
    expect(codes).toHaveLength(3);
    for (const code of codes) expect(["thread_busy", "interrupt_closed"]).toContain(code);
    await expect.poll(() => statusOf(stores, run)).toBe("idle");
    await expect(runs.resume(ADA, { ...key, answers })).rejects.toMatchObject({ code: "interrupt_closed" });
  });

  test("goes on with one run, whoever repeats the request with its key, then and later", async () => {
    const { stores, runs, run, key } = await waiting();
    const resume = { ...key, answers, idempotency_key: "once" };
    const ids = (await Promise.all([1, 2, 3].map(() => runs.resume(ADA, resume)))).map(({ id }) => id);
    await expect.poll(() => statusOf(stores, run)).toBe("idle");
    ids.push((await runs.resume(ADA, resume)).id);
    expect(new Set(ids).size).toBe(1);
    expect((await stores.runs.list(ADA, run.thread_id, { limit: 9 })).items).toHaveLength(2);
  });

  test("is cancelled by another one, also when all slots of the process are taken", async () => {
    const { tool, entered, open: letGo } = gate();
    const script = (_: unknown, call: number) =>
      [asking, { call: [{ tool: "gate" }] }, { say: "Through." }][call];
    const { stores, runs, run } = await waiting(script, { maxActive: 1, tools: [ask, tool] });
    await runs.open();
    const start = { messages: [userMessage("go")], settings: {}, metadata: {}, on_busy: "reject" } as const;
    await runs.start(ADA, { thread_id: "other", ...start });
    await entered;
    const ended = await runs.end(ADA, run.thread_id, run.id, "cancel");
    expect(ended).toMatchObject({ status: "pending", resumes: run.id });
    letGo();
    await expect.poll(() => statusOf(stores, run)).not.toMatch(/busy|interrupted/);
    expect(await stores.runs.get(ADA, run.thread_id, ended.id)).toMatchObject({ status: "cancelled" });
    expect(toolMessages(await stores.threads.messages(ADA, run.thread_id))).toMatchObject([
      { error: "Cancelled before it was run." },
    ]);
  });

  test("is not cancelled twice, and not when it has gone on", async () => {
    const { stores, runs, run, key } = await waiting();
    await runs.resume(ADA, { ...key, answers });
    await expect.poll(() => statusOf(stores, run)).toBe("idle");
    await expect(runs.end(ADA, run.thread_id, run.id, "cancel")).rejects.toMatchObject({
      code: "run_not_active",
    });
  });

  test.each([
    ["an interrupt of another id", [{ id: "question_c2", decision: "respond" }], "interrupt_closed"],
    ["a decision that does not fit", [{ id: "question_c1", decision: "approve" }], "invalid_request"],
    ["two answers to one", [...answers, ...answers], "invalid_request"],
    ["an answer that could not be remembered", [{ ...answers[0], remember: "agent" }], "invalid_request"],
  ])("takes no answer with %s", async (_name, given, code) => {
    const { runs, key } = await waiting();
    // What is wrong with them is what is tried.
    await expect(runs.resume(ADA, { ...key, answers: given as typeof answers })).rejects.toMatchObject({
      code,
    });
  });
});
