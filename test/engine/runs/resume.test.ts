import { describe, expect, test } from "vitest";
import { z } from "zod";
import { AppError } from "../../../src/agent/core/errors.ts";
import { toolMessages } from "../../../src/agent/core/message.ts";
import { askFor } from "../../../src/agent/core/open-interrupts.ts";
import type { RunRecord } from "../../../src/agent/core/records.ts";
import type { LogEntry, Stores } from "../../../src/agent/core/stores.ts";
import { defineTool, done, interrupted } from "../../../src/agent/core/tool.ts";
import type { Script, Turn } from "../../../src/agent/models/scripted.ts";
import type { Runs } from "../../../src/engine/runs/executor.ts";
import { endRun, openOn, resumeRun, startRun } from "../../../src/engine/runs/start.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { gate } from "../../support/gate.ts";
import { ADA } from "../stores/fixture.ts";
import { command, managed, settledOf } from "./managed.ts";

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

const NEVER = new AbortController().signal;

const settled = (runs: Runs, run: RunRecord) => settledOf(runs, ADA, run);
const cancel = (runs: Runs, { id: run_id, thread_id }: Pick<RunRecord, "id" | "thread_id">) =>
  endRun(runs, { owner: ADA, thread_id, run_id }, "cancel");

const statusOf = async ({ threads }: Stores, { thread_id }: RunRecord) =>
  (await threads.get(ADA, thread_id))?.status;

/** The name of the model that it says it has, once it has ended. */
async function modelOf({ events }: Stores, { id: run_id, thread_id }: RunRecord): Promise<unknown> {
  let first: LogEntry | undefined;
  const log = events.read({ owner: ADA, thread_id, run_id }, 0, NEVER);
  for await (const [entry] of log) first ??= entry;
  return JSON.parse(first?.json ?? "{}").data?.model;
}

describe("a waiting run", () => {
  const waiting = async (script: readonly Turn[] | Script = [asking, { say: "Good." }], more = {}) => {
    const stores = createMemoryStores();
    const { runs, start } = managed(stores, { script, tools: [ask], ...more });
    const run = await start(ADA);
    await expect.poll(() => statusOf(stores, run)).toBe("interrupted");
    return { stores, runs, run, key: { thread_id: run.thread_id, run_id: run.id } };
  };

  test("continues once, even if the answer is sent several times at once", async () => {
    const { stores, runs, run, key } = await waiting();
    const all = await Promise.allSettled([1, 2, 3, 4].map(() => resumeRun(runs, ADA, { ...key, answers })));
    const codes = all.flatMap((each) => (each.status === "rejected" ? [each.reason.code] : []));
    expect(codes).toHaveLength(3);
    for (const code of codes) expect(["thread_busy", "interrupt_closed"]).toContain(code);
    await expect.poll(() => statusOf(stores, run)).toBe("idle");
    await expect(resumeRun(runs, ADA, { ...key, answers })).rejects.toMatchObject({
      code: "interrupt_closed",
    });
  });

  test("cannot be answered again by a client that read its questions earlier", async () => {
    const { stores, runs, run, key } = await waiting();
    const open = await openOn(stores.threads, ADA, run.thread_id);
    await resumeRun(runs, ADA, { ...key, answers, open });
    await expect.poll(() => statusOf(stores, run)).toBe("idle");
    await expect(resumeRun(runs, ADA, { ...key, answers, open })).rejects.toMatchObject({
      code: "interrupt_closed",
    });
  });

  test("continues with one run if the request is repeated with its key, immediately or later", async () => {
    const { stores, runs, run, key } = await waiting();
    const resume = { ...key, answers, idempotency_key: "once" };
    const ids = (await Promise.all([1, 2, 3].map(() => resumeRun(runs, ADA, resume)))).map(({ id }) => id);
    await expect.poll(() => statusOf(stores, run)).toBe("idle");
    ids.push((await resumeRun(runs, ADA, resume)).id);
    expect(new Set(ids).size).toBe(1);
    expect((await stores.runs.list(ADA, run.thread_id, { limit: 9 })).items).toHaveLength(2);
  });

  describe("started with its own model and settings", () => {
    const wished = { model: "scripted:other", settings: { temperature: 0.3, max_tokens: 77 } };

    /** What the model is called with, and its name, of each run: the wished one, and two that resume it. */
    const seen = async (more: object = {}) => {
      const stores = createMemoryStores();
      const settings: unknown[] = [];
      const script: Script = (request, call) => {
        settings.push(request.settings);
        return [
          { call: [{ tool: "ask", id: "c1" }] },
          { call: [{ tool: "ask", id: "c2" }] },
          { say: "Good." },
        ][call];
      };
      const { runs } = managed(stores, { script, tools: [ask], ...more });
      let run = await startRun(runs, ADA, { ...command("t", "go", wished), metadata: { team: "a" } });
      const models = [await modelOf(stores, run)];
      for (const id of ["question_c1", "question_c2"]) {
        const answers = [{ id, decision: "respond", message: "well" } as const];
        run = await resumeRun(runs, ADA, { thread_id: "t", run_id: run.id, answers });
        models.push(await modelOf(stores, run));
      }
      return { models, settings, metadata: run.metadata };
    };

    test("continues with them", async () => {
      const { settings, models, metadata } = await seen();
      expect(settings).toEqual([wished.settings, wished.settings, wished.settings]);
      expect(models).toEqual([wished.model, wished.model, wished.model]);
      expect(metadata).toEqual({ team: "a" });
    });

    test("continues with its agent's model if its own was removed", async () => {
      let offered = 1;
      const checkModel = () => {
        if (offered-- <= 0) throw new AppError("invalid_request", "There is no such model.");
      };
      expect((await seen({ agents: { checkModel } })).models).toEqual([
        wished.model,
        "scripted:test",
        "scripted:test",
      ]);
    });

    test("does not pass them on to a run with a new message", async () => {
      const stores = createMemoryStores();
      const settings: unknown[] = [];
      const script: Script = (request, call) => {
        settings.push(request.settings);
        return call < 2 ? asking : { say: "Good." };
      };
      const { runs } = managed(stores, { script, tools: [ask] });
      const ended = (run: RunRecord) => settled(runs, run);
      const start = (more: Parameters<typeof command>[2]) => startRun(runs, ADA, command("t", "go", more));
      await ended(await start(wished));
      const run = await ended(await start({ settings: {} }));
      const resumed = await ended(await resumeRun(runs, ADA, { thread_id: "t", run_id: run.id, answers }));
      expect(settings).toEqual([wished.settings, {}, {}]);
      expect(await modelOf(stores, resumed)).toBe("scripted:test");
    });
  });

  test("is cancelled by another run, even if all slots of the process are taken", async () => {
    const { tool, entered, open: unblock } = gate();
    const script = (_: unknown, call: number) =>
      [asking, { call: [{ tool: "gate" }] }, { say: "Through." }][call];
    const { stores, runs, run } = await waiting(script, { maxActive: 1, tools: [ask, tool] });
    await runs.open();
    await startRun(runs, ADA, command("other", "go"));
    await entered;
    const ended = await cancel(runs, run);
    expect(ended).toMatchObject({ status: "pending", resumes: run.id });
    unblock();
    await expect.poll(() => statusOf(stores, run)).not.toMatch(/busy|interrupted/);
    expect(await stores.runs.get(ADA, run.thread_id, ended.id)).toMatchObject({ status: "cancelled" });
    expect(toolMessages(await stores.threads.messages(ADA, run.thread_id))).toMatchObject([
      { error: "Cancelled before it was run." },
    ]);
  });

  test("is cancelled even if its agent was removed", async () => {
    const stores = createMemoryStores();
    const first = managed(stores, { script: [asking], tools: [ask] });
    const run = await first.start(ADA);
    await expect.poll(() => statusOf(stores, run)).toBe("interrupted");
    const find = () => {
      throw new AppError("invalid_request", "There is no such agent.");
    };
    const { runs } = managed(stores, { agents: { find } });
    const ended = await cancel(runs, run);
    expect(await settled(runs, ended)).toMatchObject({
      status: "cancelled",
    });
    expect(await statusOf(stores, run)).toBe("idle");
    expect(toolMessages(await stores.threads.messages(ADA, run.thread_id))).toMatchObject([
      { error: "Cancelled before it was run." },
    ]);
  });

  test("stays open if an earlier run, which a new message ended, is cancelled", async () => {
    const { stores, runs, run } = await waiting(() => asking);
    const later = await startRun(runs, ADA, command(run.thread_id, "go"));
    await settled(runs, later);
    await expect(cancel(runs, run)).rejects.toMatchObject({
      code: "run_not_active",
    });
    expect(await statusOf(stores, run)).toBe("interrupted");
    expect(await cancel(runs, later)).toMatchObject({ resumes: later.id });
  });

  test("is cancelled by the id of its first run after one of two answers", async () => {
    const both = {
      call: [
        { tool: "ask", id: "c1" },
        { tool: "ask", id: "c2" },
      ],
    };
    const { runs, run, key } = await waiting([both, { say: "Never said." }]);
    await settled(runs, await resumeRun(runs, ADA, { ...key, answers }));
    expect(await cancel(runs, run)).toMatchObject({ resumes: run.id });
  });

  test("is not cancelled twice, or after it was resumed", async () => {
    const { runs, run, key } = await waiting();
    await settled(runs, await resumeRun(runs, ADA, { ...key, answers }));
    await expect(cancel(runs, run)).rejects.toMatchObject({
      code: "run_not_active",
    });
  });

  test.each([
    ["an interrupt of another id", [{ id: "question_c2", decision: "respond" }], "interrupt_closed"],
    ["a decision that does not fit", [{ id: "question_c1", decision: "approve" }], "invalid_request"],
    ["two answers to one", [...answers, ...answers], "invalid_request"],
    ["an answer that could not be remembered", [{ ...answers[0], remember: "agent" }], "invalid_request"],
  ])("accepts no answer with %s", async (_name, given, code) => {
    const { runs, key } = await waiting();
    // What is wrong with them is what is tried.
    await expect(resumeRun(runs, ADA, { ...key, answers: given as typeof answers })).rejects.toMatchObject({
      code,
    });
  });
});
