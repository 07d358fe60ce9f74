import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { AppError } from "../../../src/agent/core/errors.ts";
import type { Hook } from "../../../src/agent/core/hook.ts";
import { conversation } from "../../../src/agent/core/message.ts";
import type { RunRecord } from "../../../src/agent/core/records.ts";
import type { Stores } from "../../../src/agent/core/stores.ts";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { QuotaConfig } from "../../../src/engine/quotas/config.ts";
import { createQuotas, type Quotas } from "../../../src/engine/quotas/index.ts";
import { getRun, stopRun } from "../../../src/engine/runs/control.ts";
import { Executor } from "../../../src/engine/runs/executor.ts";
import { startRun } from "../../../src/engine/runs/start.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { openMemoryQuotas } from "../../../src/engine/stores/sqlite/quotas.ts";
import { SILENT } from "../../../src/lib/logger.ts";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import type { Owner } from "../../../src/protocol/ids.ts";
import { newPool } from "../../support/pool.ts";
import { ADA, claimed, newRun } from "../stores/fixture.ts";
import { bent, command, managed, settledOf, sqliteStores } from "./managed.ts";

const OTHER: Owner = { tenant: "other", user: "eve" };
/** A lease that no slow machine exceeds, and that no timer renews during a test. */
const LONG_MS = 3_600_000;

/** A tool that is entered, and ends only with its run: at once, or when it has `cleaned` up. */
function endless(name = "endless", cleaned: Promise<void> = Promise.resolve()) {
  const entered = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<void>();
  const tool = defineTool({
    name,
    description: "Waits.",
    parameters: z.object({}),
    execute: (_args, _call, run) =>
      new Promise<string>((_, reject) => {
        run.signal.addEventListener("abort", () => {
          stopped.resolve();
          void cleaned.then(() => reject(run.signal.reason));
        });
        entered.resolve();
      }),
  });
  return { tool, entered: entered.promise, stopped: stopped.promise };
}

const ENDLESS = () => ({ call: [{ tool: "endless" }] });

/** Resolves once the run has begun. */
async function begun(stores: Stores, owner: Owner, { id, thread_id }: RunRecord): Promise<void> {
  await expect.poll(async () => (await stores.runs.get(owner, thread_id, id))?.status).toBe("running");
}

describe("a process that stops", () => {
  test("hands over a run that was about to start", async () => {
    const stores = await sqliteStores();
    const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const slow = bent(stores, {
      async start(...args) {
        const result = await stores.runs.start(...args);
        asked.resolve();
        await answer.promise;
        return result;
      },
    });
    const { tool } = endless();
    const { runs, start } = managed(slow, { script: ENDLESS, tools: [tool] });
    await runs.open();
    const starting = start(ADA);
    await asked.promise;
    const closing = runs.close(0);
    await new Promise((resolve) => setImmediate(resolve));
    answer.resolve();
    const { id } = await starting;
    await closing;
    expect((await stores.runs.claimAbandoned(10)).map(({ run }) => run.id)).toEqual([id]);
  });

  test("hands each run over as soon as it has ended here", async () => {
    const stores = await sqliteStores({ leaseMs: LONG_MS });
    const unblock = Promise.withResolvers<void>();
    const hold: Hook = {
      name: "hold",
      beforeAgent: (run) => (run.threadId === "slow" ? unblock.promise : undefined),
    };
    const { tool, entered } = endless();
    const { runs, start } = managed(stores, { script: ENDLESS, tools: [tool], hooks: [hold] });
    await runs.open();
    const slow = await start(ADA, "go", "slow");
    const quick = await start(ADA, "go", "quick");
    await entered;
    const closing = runs.close(0);
    const taken: string[] = [];
    const look = async () => {
      taken.push(...(await stores.runs.claimAbandoned(10)).map(({ run }) => run.id));
      return taken;
    };
    await expect.poll(look).toEqual([quick.id]);
    unblock.resolve();
    await closing;
    expect(await look()).toEqual([quick.id, slow.id]);
  });

  test("hands a run over when the last of its tools has ended here", async () => {
    const stores = await sqliteStores({ leaseMs: LONG_MS });
    const unblock = Promise.withResolvers<void>();
    const quick = endless("quick");
    const slow = endless("slow", unblock.promise);
    const script = () => ({ call: [{ tool: "quick" }, { tool: "slow" }] });
    const { runs, start } = managed(stores, { script, tools: [quick.tool, slow.tool] });
    await runs.open();
    const { id, thread_id } = await start(ADA);
    await Promise.all([quick.entered, slow.entered]);
    const closing = runs.close(0);
    await Promise.all([quick.stopped, slow.stopped]);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(await stores.runs.claimAbandoned(10)).toEqual([]);
    unblock.resolve();
    await closing;
    expect((await stores.runs.claimAbandoned(10)).map(({ run }) => run.id)).toEqual([id]);
    // The process that took the run over decides about them.
    expect((await stores.threads.messages(ADA, thread_id)).map(({ role }) => role)).toEqual([
      "user",
      "assistant",
    ]);
  });

  test("hands over a run that does not end, and stops trying to end it once its store is closed", async () => {
    const stores = await sqliteStores();
    const unblock = Promise.withResolvers<void>();
    const hold: Hook = { name: "hold", beforeAgent: () => unblock.promise };
    const { runs, start } = managed(stores, { hooks: [hold] });
    await runs.open();
    const { id } = await start(ADA);
    await runs.close(0);
    expect((await stores.runs.claimAbandoned(10)).map(({ run }) => run.id)).toEqual([id]);
    await stores.close();
    unblock.resolve();
    // Resolves once nothing is executed.
    await runs.close(60_000);
  });
});

describe("a run that is taken over", () => {
  /** What a dead process has left of a run: its beginning, and `events`. */
  async function left(events: readonly StreamEvent[]) {
    let time = Date.now();
    const stores = await sqliteStores({ now: () => time });
    const { run, lease, request } = await claimed(stores, "t");
    await stores.events.append(lease, [
      { event: "run_start", data: { agent: "helper", model: "m", attempt: 1 } },
      ...request.input.map((message): StreamEvent => ({ event: "on_message", data: { message } })),
      ...events,
    ]);
    time += 60_000;
    return { stores, run };
  }

  test.each(["cancel", undefined] as const)(
    "keeps the text if it was cancelled, and otherwise calls the model again: %s",
    async (stop) => {
      const { stores, run } = await left([
        { event: "on_chat_model_start", name: "m", data: { message_id: "msg_cut", model: "m" } },
        { event: "on_chat_model_stream", data: { delta: "Half of" } },
        { event: "on_chat_model_stream", path: ["c"], data: { delta: "a child's" } },
        { event: "on_chat_model_stream", data: { delta: " it" } },
      ]);
      if (stop) await stores.runs.requestStop(ADA, "t", run.id, stop);
      const { runs } = managed(stores, { script: [{ say: "All of it" }] });
      await runs.open();
      expect((await settledOf(runs, ADA, run)).status).toBe(stop ? "cancelled" : "success");
      const cut = { id: "msg_cut", content: "Half of it", incomplete: "stopped" };
      expect(
        (await stores.threads.messages(ADA, "t")).filter(({ role }) => role === "assistant"),
      ).toMatchObject(stop ? [cut] : [{ content: "All of it" }]);
    },
  );

  test("runs a call whose id the model has used before for another, finished one", async () => {
    const call = { id: "call_0", name: "count", args: {} };
    const { messages } = conversation().assistant("", call).tool(call.id, call.name, "1");
    const [asked, answered] = messages.map(
      (message): StreamEvent => ({ event: "on_message", data: { message } }),
    ) as [StreamEvent, StreamEvent];
    const { stores, run } = await left([
      asked,
      { event: "on_tool_start", name: "count", data: { call_id: call.id, args: {} } },
      { event: "on_tool_end", name: "count", data: { call_id: call.id, output: "1", duration_ms: 1 } },
      answered,
    ]);
    let counted = 1;
    const tool = defineTool({
      name: "count",
      description: "Counts.",
      parameters: z.object({}),
      execute: async () => String(++counted),
    });
    const script = [{ call: [{ tool: "count", id: call.id }] }, { say: "done" }];
    const { runs } = managed(stores, { script, tools: [tool] });
    await runs.open();
    expect(await settledOf(runs, ADA, run)).toMatchObject({ status: "success" });
    expect(counted).toBe(2);
  });
});

describe("a process on a machine that was asleep", () => {
  test("keeps its runs", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const stores = createMemoryStores();
    const { tool, entered } = endless();
    const script = (_: unknown, call: number) => (call === 0 ? ENDLESS() : { say: "ok" });
    const { runs, start } = managed(stores, { script, tools: [tool] });
    await runs.open();
    const own = await start(ADA);
    await entered;
    vi.setSystemTime(Date.now() + 60_000);
    const news = newRun("t");
    await stores.runs.enqueue(OTHER, news, "reject");
    expect((await settledOf(runs, OTHER, news)).status).toBe("success");
    expect(await getRun(runs, { owner: ADA, thread_id: own.thread_id, run_id: own.id })).toMatchObject({
      status: "running",
      attempt: 1,
    });
  });
});

describe("a lease", () => {
  test("that is renewed just as its run ends logs no error", async () => {
    const stores = createMemoryStores({ leaseMs: 3_000 });
    const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const unblock = Promise.withResolvers<void>();
    const slow = bent(stores, {
      async renew(lease) {
        asked.resolve();
        await answer.promise;
        return stores.runs.renew(lease);
      },
    });
    const hold: Hook = { name: "hold", beforeAgent: () => unblock.promise };
    const { runs, start, errors } = managed(slow, { hooks: [hold] });
    await runs.open();
    const run = await start(ADA);
    await asked.promise;
    unblock.resolve();
    await settledOf(runs, ADA, run);
    answer.resolve();
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(errors).toEqual([]);
  });
});

test("simultaneous runs all report their start before a second one is executed", async () => {
  const stores = createMemoryStores();
  const order: string[] = [];
  const watched: Stores = {
    ...stores,
    events: {
      ...stores.events,
      append(lease, events) {
        if (events.some(({ event }) => event === "run_start")) order.push("begins");
        return stores.events.append(lease, events);
      },
    },
  };
  const work: Hook = { name: "work", beforeAgent: () => void order.push("works") };
  const { runs, start } = managed(watched, { hooks: [work], script: () => ({ say: "ok" }) });
  await runs.open();
  const all = await Promise.all(Array.from({ length: 16 }, () => start(ADA)));
  await Promise.all(all.map((run) => settledOf(runs, ADA, run)));
  const second = order.indexOf("works", order.indexOf("works") + 1);
  expect(order.slice(0, second).filter((each) => each === "begins")).toHaveLength(16);
});

describe("runs that wait for a slot", () => {
  test("are not overtaken by new ones, even with a slow store", async () => {
    const stores = createMemoryStores({ leaseMs: LONG_MS });
    const silence = Promise.withResolvers<never>();
    const slow = bent(stores, { renew: () => silence.promise });
    const unblock = new Map<string, () => void>();
    const order: string[] = [];
    const hold: Hook = {
      name: "hold",
      beforeAgent: (run) => {
        order.push(run.threadId);
        return new Promise((resolve) => unblock.set(run.threadId, resolve));
      },
    };
    const { runs, start } = managed(slow, { hooks: [hold], maxActive: 2, script: () => ({ say: "ok" }) });
    await runs.open();
    const first = await start(ADA, "go", "one");
    await expect.poll(() => order).toEqual(["one"]);
    await start(ADA, "go", "two");
    await expect.poll(() => order).toEqual(["one", "two"]);
    await start(OTHER, "go", "waits");
    unblock.get("one")?.();
    expect((await settledOf(runs, ADA, first)).status).toBe("success");
    await start(ADA, "go", "new");
    await expect.poll(() => order).toHaveLength(3);
    expect(order).toEqual(["one", "two", "waits"]);
    for (const go of unblock.values()) go();
    await expect.poll(() => order).toEqual(["one", "two", "waits", "new"]);
    for (const go of unblock.values()) go();
  });

  test("are found when a slot that was taken for a poll is freed", async () => {
    const stores = createMemoryStores();
    const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const slow = bent(stores, {
      async start(...args) {
        asked.resolve();
        await answer.promise;
        return stores.runs.start(...args);
      },
    });
    await claimed(stores, "busy");
    const { runs, start } = managed(slow, { maxActive: 1 });
    await runs.open();
    const refused = start(ADA, "go", "busy").catch((error: unknown) => error);
    await asked.promise;
    const waiting = await start(OTHER, "go", "waits");
    expect(waiting.status).toBe("pending");
    await new Promise((resolve) => setImmediate(resolve));
    answer.resolve();
    expect(await refused).toMatchObject({ code: "thread_busy" });
    await settledOf(runs, OTHER, waiting);
  });

  test("start as soon as their tenant has its share again, even if other slots stayed free", async () => {
    const stores = createMemoryStores({ leaseMs: LONG_MS });
    const unblock = Promise.withResolvers<void>();
    const hold: Hook = { name: "hold", beforeAgent: () => unblock.promise };
    const { runs, start } = managed(stores, { hooks: [hold], maxActive: 2, hasSeveralTenants: true });
    await runs.open();
    await begun(stores, ADA, await start(ADA));
    const waiting = await start(ADA);
    expect(waiting.status).toBe("pending");
    unblock.resolve();
    expect((await settledOf(runs, ADA, waiting)).status).toBe("success");
  });

  test("are polled for after every notification, even during another poll", async () => {
    const stores = createMemoryStores();
    let looks = 0;
    const counted = bent(stores, {
      claimAbandoned: (...which) => {
        looks++;
        return stores.runs.claimAbandoned(...which);
      },
    });
    const { agents } = managed(stores);
    const backends = newPool({ dataDir: "/nonexistent" });
    for (let ticks = 0; ticks < 40; ticks++) {
      const executor = new Executor({ stores: counted, logger: SILENT, agents, backends, maxActive: 4 });
      const first = executor.poll();
      for (let tick = 0; tick < ticks; tick++) await undefined;
      const before = looks;
      await executor.poll();
      expect(looks, `after ${ticks} ticks`).toBeGreaterThan(before);
      await first;
    }
  });

  test("cause no renewals of fresh leases", async () => {
    const stores = createMemoryStores({ leaseMs: LONG_MS });
    let renewals = 0;
    const counted = bent(stores, {
      renew: (lease) => {
        renewals++;
        return stores.runs.renew(lease);
      },
    });
    const { tool } = endless();
    const { runs, start } = managed(counted, { script: ENDLESS, tools: [tool], maxActive: 8 });
    await runs.open();
    const active = [];
    for (let n = 0; n < 8; n++) active.push(await start(ADA));
    for (const run of active) await begun(stores, ADA, run);
    renewals = 0;
    for (let n = 0; n < 50; n++) {
      await start(OTHER);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(renewals).toBeLessThan(20);
  });
});

test("a waiting run that ended before its start was confirmed no longer counts", async () => {
  const store = openMemoryQuotas().quotas;
  const own = createQuotas(store, QuotaConfig.parse({ user: { concurrent_runs: 2 } }), { threadMs: 60_000 });
  const owner = { tenant: "acme", user: "ada" };
  const quotas: Quotas = {
    ...own,
    async keepWaiting(of, id) {
      // Another process was faster.
      const [waiting] = (await stores.runs.list(owner, "t", { limit: 1 })).items;
      if (waiting) await stopRun(runs, { owner, thread_id: "t", run_id: waiting.id }, "cancel");
      return own.keepWaiting(of, id);
    },
  };
  const stores = createMemoryStores();
  const { runs } = managed(stores, { script: () => ({ say: "a b c", delay_ms: 60_000 }), quotas });
  await runs.open();
  await startRun(runs, owner, command("t", "go"));
  const waiting = await startRun(runs, owner, { ...command("t", "next"), on_busy: "enqueue" });
  expect((await stores.runs.get(owner, "t", waiting.id))?.status).toBe("cancelled");
  expect((await store.held(owner)).user.runs).toBe(1);
});

test("a waiting run counts for longer than one that was only accepted", async () => {
  let time = Date.now();
  const store = openMemoryQuotas(() => time).quotas;
  const config = QuotaConfig.parse({ user: { concurrent_runs: 2 } });
  const { runs } = managed(createMemoryStores(), {
    script: () => ({ say: "a b c", delay_ms: 60_000 }),
    quotas: createQuotas(store, config, { threadMs: 60_000 }),
  });
  await runs.open();
  await startRun(runs, ADA, command("t", "go"));
  await startRun(runs, ADA, { ...command("t", "next"), on_busy: "enqueue" });
  time += 61_000;
  expect((await store.held(ADA)).user.runs).toBeGreaterThan(0);
});

test("the end of a waiting run is prepared before it is cancelled, so no crash loses it", async () => {
  const stores = createMemoryStores();
  const prepared: unknown[] = [];
  const { runs } = managed(stores, {
    script: () => ({ say: "a b c", delay_ms: 60_000 }),
    async beforeEnd({ owner, run }) {
      prepared.push(run.id, (await stores.runs.get(owner, "t", run.id))?.status);
      return () => void prepared.push("told");
    },
  });
  await runs.open();
  await startRun(runs, ADA, command("t", "go"));
  const { id: run_id } = await startRun(runs, ADA, { ...command("t", "next"), on_busy: "enqueue" });
  await stopRun(runs, { owner: ADA, thread_id: "t", run_id }, "cancel");
  expect(prepared).toEqual([run_id, "pending", "told"]);
});

test("a run whose agent cannot be built no longer counts, and answers the calls that started it", async () => {
  const stores = createMemoryStores();
  const counted = openMemoryQuotas().quotas;
  const quotas = createQuotas(counted, QuotaConfig.parse({ user: { concurrent_runs: 2 } }), {
    threadMs: 60_000,
  });
  const { runs, agents } = managed(stores);
  let built = 0;
  const failing = {
    build: async (...args: Parameters<typeof agents.build>) => {
      // For the check of the calls first.
      if (built++ === 0) return { ...(await agents.build(...args)), absence: () => "Not there now." };
      throw new AppError("invalid_request", "There is no such agent.");
    },
  };
  const engine = managed(stores, { agents: failing, quotas }).runs;
  await engine.open();
  const { request, ...rest } = command("t", "go");
  const run = await startRun(engine, ADA, { ...rest, request, calls: [{ name: "pay", args: {} }] });
  await settledOf(runs, ADA, run);
  expect(await stores.threads.messages(ADA, "t")).toMatchObject([
    { role: "user" },
    { by_user: true, tool_calls: [{ name: "pay" }] },
    { role: "tool", name: "pay", error: "Not run: the run ended before this call started." },
  ]);
  expect((await counted.held(ADA)).user.runs).toBe(0);
});
