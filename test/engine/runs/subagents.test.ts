// What delegation needs of the engine.

import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Subagents } from "../../../src/agent/core/hook.ts";
import { userMessage } from "../../../src/agent/core/message.ts";
import { newThreadId } from "../../../src/agent/core/new-ids.ts";
import type { Lineage } from "../../../src/agent/core/records.ts";
import type { Stores } from "../../../src/agent/core/stores.ts";
import { scriptedModel } from "../../../src/agent/models/scripted.ts";
import { QuotaConfig } from "../../../src/engine/quotas/config.ts";
import { createQuotas } from "../../../src/engine/quotas/index.ts";
import { createEngine } from "../../../src/engine/runs/index.ts";
import { startRun } from "../../../src/engine/runs/start.ts";
import { deleteThreadTree } from "../../../src/engine/runs/thread-actions.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { openMemoryQuotas } from "../../../src/engine/stores/sqlite/quotas.ts";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import { gate, gated } from "../../support/gate.ts";
import { newPool } from "../../support/pool.ts";
import { ADA, claimed } from "../stores/fixture.ts";
import { command, DEFINITION, sqliteStores } from "./managed.ts";

const lineage: Lineage = {
  parent: { thread_id: "parent", run_id: "run_1", call_id: "call_1", background: false },
  ...{ root: "parent", depth: 1, name: "helper-task-1" },
};
const child = (thread_id = newThreadId()) => ({
  ...{ thread_id, agent: "helper", messages: [userMessage("Do it.")], lineage },
});

/** A manager with room for one run, which `parent` has; and what its agents are given to delegate with. */
async function fullHouse(stores: Stores, quotas?: object) {
  const { tool, entered, open } = gate();
  let subagents: Subagents | undefined;
  const script = ({ messages }: { messages: readonly unknown[] }) =>
    JSON.stringify(messages).includes("hold") ? gated[Math.min(1, messages.length - 1)] : { say: "Done." };
  const model = scriptedModel(script);
  const agent = { name: "helper", model, system: [], tools: [tool], hooks: [], maxIterations: 25 };
  const runs = createEngine({
    ...{ stores, maxActive: 1, backends: newPool({ dataDir: "/nonexistent" }) },
    agents: {
      ...{ find: () => DEFINITION, checkModel() {}, isReserved: () => false },
      async build(_, services) {
        subagents = services.subagents;
        return agent;
      },
    },
    logger: { info() {}, warn() {}, error() {} },
    ...(quotas
      ? { quotas: createQuotas(openMemoryQuotas().quotas, QuotaConfig.parse(quotas), { threadMs: 60_000 }) }
      : {}),
  });
  onTestFinished(async () => {
    await runs.close(0);
    await stores.close();
  });
  await startRun(runs, ADA, command("parent", "hold"));
  await entered;
  if (!subagents) throw new Error("No run was built.");
  return { runs, subagents, open };
}

async function all(events: AsyncIterable<StreamEvent>): Promise<StreamEvent[]> {
  const seen: StreamEvent[] = [];
  for await (const event of events) seen.push(event);
  return seen;
}

const never = new AbortController().signal;

describe("a child that its parent waits for", () => {
  test("is executed outside the slots, and started once", async () => {
    const stores = createMemoryStores();
    const { subagents } = await fullHouse(stores);
    const news = child();
    const [one, two] = [await subagents.begin(ADA, news), await subagents.begin(ADA, news)];
    expect(two.id).toBe(one.id);
    const events = await all(subagents.events(ADA, one, never));
    expect(events.at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
    expect(await stores.threads.get(ADA, news.thread_id)).toMatchObject({ parent: lineage.parent });
    expect((await stores.runs.list(ADA, news.thread_id, { limit: 10 })).items).toHaveLength(1);
  });

  test("is adopted by the waiting run if its process died", async () => {
    let time = Date.now();
    const stores = await sqliteStores({ now: () => time, leaseMs: 3_600_000 });
    const { run } = await claimed(stores, "child");
    time += 7_200_000;
    const { subagents } = await fullHouse(stores);
    const events = await all(subagents.events(ADA, run, never));
    expect(events.at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
    expect((await subagents.newest(ADA, "child"))?.attempt).toBe(2);
  });

  test("is adopted by the waiting run if its process dies later", async () => {
    let time = Date.now();
    const stores = await sqliteStores({ now: () => time, leaseMs: 200 });
    const { run } = await claimed(stores, "child");
    const { subagents } = await fullHouse(stores);
    const claims = vi.spyOn(stores.runs, "claimNext");
    const following = all(subagents.events(ADA, run, never));
    await expect.poll(() => claims.mock.settledResults[0]?.type).toBe("fulfilled");
    // Its process lives, so the parent has found nothing to adopt.
    time += 60_000;
    expect((await following).at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
  });

  test("is not created above the limit", async () => {
    const stores = createMemoryStores();
    const { subagents } = await fullHouse(stores, { user: { concurrent_runs: 1 } });
    const news = child();
    await expect(subagents.begin(ADA, news)).rejects.toMatchObject({ code: "limit_exceeded" });
    expect(await stores.threads.get(ADA, news.thread_id)).toBeUndefined();
  });

  test("is visible to no other user", async () => {
    const { subagents } = await fullHouse(createMemoryStores());
    const news = child();
    const run = await subagents.begin(ADA, news);
    const eve = { tenant: "other", user: "eve" };
    expect(await subagents.newest(eve, news.thread_id)).toBeUndefined();
    await expect(all(subagents.events(eve, run, never))).rejects.toMatchObject({
      code: "not_found",
    });
    await subagents.stop(eve, run, "cancel");
    expect(await subagents.thread(eve, news.thread_id)).toEqual({ messages: [], state: {} });
  });
});

test("a thread is deleted with the threads of all its subagents, however many", async () => {
  const { threads, close } = createMemoryStores();
  onTestFinished(() => close());
  const quotas = createQuotas(openMemoryQuotas().quotas, QuotaConfig.parse({}), { threadMs: 60_000 });
  await threads.create(ADA, { id: "parent", metadata: {}, state: { subagents: {} } });
  for (let n = 0; n < 101; n++)
    await threads.create(ADA, { id: `c${n}`, metadata: {}, parent: lineage.parent });
  expect(await deleteThreadTree({ threads, quotas }, ADA, "parent")).toBe(true);
  expect((await threads.list(ADA, { limit: 10, children: true })).items).toEqual([]);
});
