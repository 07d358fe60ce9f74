import { describe, expect, test } from "vitest";
import { z } from "zod";
import { AppError } from "../../../src/agent/core/errors.ts";
import { toolMessages } from "../../../src/agent/core/message.ts";
import { askFor, openInterrupts } from "../../../src/agent/core/open-interrupts.ts";
import type { RunRecord } from "../../../src/agent/core/records.ts";
import type { Stores } from "../../../src/agent/core/stores.ts";
import { defineTool, done, failed, interrupted } from "../../../src/agent/core/tool.ts";
import { resumeThreads } from "../../../src/engine/runs/index.ts";
import { resumeRun } from "../../../src/engine/runs/start.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { createSqliteStores } from "../../../src/engine/stores/sqlite/index.ts";
import type { InterruptPolicy } from "../../../src/protocol/interrupt.ts";
import { temporaryFolder } from "../../support/server.ts";
import { ADA } from "../stores/fixture.ts";
import { managed, sqliteStores } from "./managed.ts";

/** A tool that launches what it is allowed to. */
function launcher(kind: "approval" | "question" = "approval") {
  const launched: string[] = [];
  const tool = defineTool({
    name: "launch",
    description: "Launches.",
    parameters: z.object({}),
    async *execute(_args, call, run) {
      const answer = yield* askFor({ call, kind, prompt: "Launch?" }, run);
      if (!answer) return interrupted();
      if (answer.decision === "deny") return failed(answer.message ?? "No.");
      launched.push(call.id);
      return done("launched");
    },
  });
  return { tool, launched };
}

const script = [{ call: [{ tool: "launch", id: "c1" }] }, { say: "Done." }];
const policy = (more: Partial<InterruptPolicy> = {}): InterruptPolicy => ({
  ...{ expiresAfterMs: 50, onExpiry: "deny", unattended: false },
  ...more,
});

const threadOf = async ({ threads }: Stores, { thread_id }: RunRecord) => {
  const [messages, state] = await Promise.all([
    threads.messages(ADA, thread_id),
    threads.state(ADA, thread_id),
  ]);
  return {
    results: toolMessages(messages).map(({ content, error }) => error ?? content),
    open: openInterrupts(new Map(Object.entries(state))),
  };
};
const statusOf = async ({ threads }: Stores, { thread_id }: RunRecord) =>
  (await threads.get(ADA, thread_id))?.status;
const isWaiting = (stores: Stores, run: RunRecord) =>
  expect.poll(() => statusOf(stores, run)).toBe("interrupted");
/** Any process may look, whenever it likes. */
const isGoneOnWith = (stores: Stores, { wake, run }: { wake: () => Promise<void>; run: RunRecord }) =>
  expect
    .poll(async () => {
      await wake();
      return statusOf(stores, run);
    })
    .toBe("idle");

describe("an interrupt that expires", () => {
  test.each([
    ["is denied", {}, [], "No one answered in time. Continue without it."],
    ["is approved where the agent says so", { onExpiry: "approve" }, ["c1"], "launched"],
  ] as const)("%s", async (_name, more, calls, result) => {
    const stores = createMemoryStores();
    const { tool, launched } = launcher();
    const { runs, start, errors } = managed(stores, { script, tools: [tool], interrupts: policy(more) });
    const run = await start(ADA);
    await isWaiting(stores, run);
    expect((await threadOf(stores, run)).open).toMatchObject([{ expires_at: expect.any(String) }]);
    await isGoneOnWith(stores, { wake: () => resumeThreads(runs), run });
    expect(await threadOf(stores, run)).toMatchObject({ results: [result], open: [] });
    expect(launched).toEqual(calls);
    const { items } = await stores.runs.list(ADA, run.thread_id, { limit: 9 });
    expect(items).toMatchObject([{ status: "success", resumes: run.id }, { id: run.id }]);
    expect(await stores.deferredCalls.get({ owner: ADA, thread_id: run.thread_id, call_id: "c1" })).toBe(
      undefined,
    );
    expect(errors).toEqual([]);
  });

  test("is denied if it is a question, even if approvals are approved", async () => {
    const stores = createMemoryStores();
    const { tool, launched } = launcher("question");
    const interrupts = policy({ onExpiry: "approve" });
    const { runs, start } = managed(stores, { script, tools: [tool], interrupts });
    const run = await start(ADA);
    await isWaiting(stores, run);
    await isGoneOnWith(stores, { wake: () => resumeThreads(runs), run });
    expect(launched).toEqual([]);
  });

  test("can still be answered until another run starts on the thread", async () => {
    const stores = createMemoryStores();
    const { tool, launched } = launcher();
    const { runs, start } = managed(stores, {
      script,
      tools: [tool],
      interrupts: policy({ expiresAfterMs: 1 }),
    });
    const run = await start(ADA);
    await isWaiting(stores, run);
    const expired = async () =>
      Date.parse((await threadOf(stores, run)).open[0]?.expires_at ?? "") < Date.now();
    await expect.poll(expired).toBe(true);
    await resumeRun(runs, ADA, {
      ...{ thread_id: run.thread_id, run_id: run.id },
      answers: [{ id: "approval_c1", decision: "approve" }],
    });
    await expect.poll(() => statusOf(stores, run)).toBe("idle");
    expect(launched).toEqual(["c1"]);
  });

  test("is decided for every waiting call", async () => {
    const stores = createMemoryStores();
    const { tool, launched } = launcher();
    const ids = Array.from({ length: 110 }, (_, index) => `c${index}`);
    const many = [{ call: ids.map((id) => ({ tool: "launch", id })) }, { say: "Done." }];
    const interrupts = policy({ expiresAfterMs: 1_000, onExpiry: "approve" });
    const { runs, start } = managed(stores, { script: many, tools: [tool], interrupts });
    const run = await start(ADA);
    await isWaiting(stores, run);
    expect((await threadOf(stores, run)).open).toHaveLength(110);
    await isGoneOnWith(stores, { wake: () => resumeThreads(runs), run });
    expect(launched.toSorted()).toEqual(ids.toSorted());
  });

  test("stays open before its time", async () => {
    const stores = createMemoryStores();
    const { tool } = launcher();
    const { runs, start } = managed(stores, {
      script,
      tools: [tool],
      interrupts: policy({ expiresAfterMs: 60_000 }),
    });
    const run = await start(ADA);
    await isWaiting(stores, run);
    await resumeThreads(runs);
    expect(await statusOf(stores, run)).toBe("interrupted");
  });
});

test("an interrupt that expires while no process runs is decided by the next one", async () => {
  const dataDir = await temporaryFolder();
  const { tool, launched } = launcher();
  const options = { script, tools: [tool], interrupts: policy({ onExpiry: "approve" }) };
  const before = await createSqliteStores({ dataDir });
  const first = managed(before, options);
  const run = await first.start(ADA);
  await isWaiting(before, run);
  await first.runs.close(0);
  await before.close();

  const stores = await createSqliteStores({ dataDir });
  const second = managed(stores, { ...options, script: [{ say: "Done." }] });
  await isGoneOnWith(stores, { wake: () => resumeThreads(second.runs), run });
  expect(launched).toEqual(["c1"]);
  expect((await threadOf(stores, run)).results).toEqual(["launched"]);
});

test("an interrupt whose agent was removed is closed once it expires", async () => {
  const stores = await sqliteStores();
  const asking = managed(stores, { script, tools: [launcher().tool], interrupts: policy() });
  const run = await asking.start(ADA);
  await isWaiting(stores, run);
  await asking.runs.close(0);
  const find = () => {
    throw new AppError("invalid_request", "There is no such agent.");
  };
  const { runs, errors } = managed(stores, { agents: { find } });
  await expect
    .poll(async () => {
      await resumeThreads(runs);
      return errors;
    })
    .not.toEqual([]);
  const { thread_id } = run;
  expect(await stores.deferredCalls.get({ owner: ADA, thread_id, call_id: "c1" })).toBeUndefined();
});

test("an approved call during which the process died is not started again, even with an expiry", async () => {
  const stores = await sqliteStores();
  let attempts = 0;
  const entered = Promise.withResolvers<void>();
  const tool = defineTool({
    name: "launch",
    description: "Launches.",
    parameters: z.object({}),
    async *execute(_args, call, run) {
      const answer = yield* askFor({ call, kind: "approval", prompt: "Launch?" }, run);
      if (!answer) return interrupted();
      attempts++;
      entered.resolve();
      return yield* never(run.signal);
    },
  });
  const options = { script, tools: [tool], interrupts: policy({ expiresAfterMs: 60_000 }) };
  const dying = managed(stores, options);
  const run = await dying.start(ADA);
  await isWaiting(stores, run);
  const resumed = await resumeRun(dying.runs, ADA, {
    ...{ thread_id: run.thread_id, run_id: run.id },
    answers: [{ id: "approval_c1", decision: "approve" }],
  });
  await entered.promise;
  await dying.runs.close(0);

  const next = managed(stores, { ...options, script: [{ say: "Done." }] });
  await next.runs.open();
  await expect.poll(() => statusOf(stores, run)).toBe("idle");
  expect(attempts).toBe(1);
  expect((await threadOf(stores, run)).results).toEqual([expect.stringContaining("Outcome unknown")]);
  expect(await stores.runs.get(ADA, run.thread_id, resumed.id)).toMatchObject({
    status: "success",
    attempt: 2,
  });
});

test("unattended runs ask no one, and the model learns why", async () => {
  const stores = createMemoryStores();
  const { tool, launched } = launcher();
  const { start } = managed(stores, { script, tools: [tool], interrupts: policy({ unattended: true }) });
  const run = await start(ADA);
  await expect.poll(() => statusOf(stores, run)).toBe("idle");
  expect((await threadOf(stores, run)).results).toEqual([expect.stringContaining("no one is available")]);
  expect(launched).toEqual([]);
});

async function* never(signal: AbortSignal): AsyncGenerator<never, never> {
  return new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}
