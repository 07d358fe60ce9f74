import { expect, test } from "vitest";
import { AppError } from "../../../src/agent/core/errors.ts";
import { QuotaConfig } from "../../../src/engine/quotas/config.ts";
import { createQuotas } from "../../../src/engine/quotas/index.ts";
import type { QuotaStore } from "../../../src/engine/quotas/store.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import type { Owner } from "../../../src/protocol/ids.ts";
import { bent } from "../../engine/runs/managed.ts";
import { bareServer } from "../../support/bare-server.ts";
import { post } from "../../support/sse.ts";

test("a stream takes its place before its run starts, so a refused client starts no run", async () => {
  const stores = createMemoryStores();
  const released = Promise.withResolvers<void>();
  const entered: string[] = [];
  const slow = bent(stores, {
    async start(owner, run, whenBusy) {
      entered.push(run.thread_id);
      await released.promise;
      return stores.runs.start(owner, run, whenBusy);
    },
  });
  const quotas = createQuotas(stores.quotas, QuotaConfig.parse({}), { threadMs: 1000 });
  const url = await bareServer(slow, { quotas, streams: 1 });
  let refused = 0;
  const replies = ["t1", "t2", "t3"].map(async (thread) => {
    const viewer = await post(`${url}/threads/${thread}/runs`, { input: "go" });
    if (viewer.status === 503) refused++;
    return viewer;
  });
  await expect.poll(() => entered.length + refused).toBe(3);
  released.resolve();
  const statuses = (await Promise.all(replies)).map(({ status }) => status);
  expect(statuses.sort()).toEqual([200, 503, 503]);
  expect(entered).toHaveLength(1);
});

/** What fails in a start, and what the quotas hold afterwards: what is there. */
test.each([
  ["streams", { runs: 1, threads: 1 }],
  ["runs", { runs: 1, threads: 1 }],
  ["threads", { runs: 1, threads: 1 }],
  ["accounts", { runs: 1, threads: 1 }],
  ["start", { runs: 1, threads: 1 }],
  // The run is queued by then.
  ["active", { runs: 2, threads: 1 }],
])(
  "a start that fails at %s releases the quotas of everything that it did not create",
  async (point, held) => {
    const stores = createMemoryStores();
    const owners = new Set<Owner>();
    let fails = "nothing";
    const failAt = (...points: string[]) => {
      if (points.includes(fails)) throw new AppError("unavailable", "The store is away.");
    };
    const counters: QuotaStore = {
      ...stores.quotas,
      async hold(owner, hold, most) {
        owners.add(owner);
        failAt(hold.thing);
        return stores.quotas.hold(owner, hold, most);
      },
      async accounts(owner) {
        failAt("accounts");
        return stores.quotas.accounts(owner);
      },
    };
    const failing = bent(stores, {
      async start(owner, run, whenBusy) {
        failAt("start");
        return stores.runs.start(owner, run, whenBusy);
      },
      async active(owner, thread) {
        failAt("active");
        return stores.runs.active(owner, thread);
      },
    });
    const user = { concurrent_runs: 9, streams: 9, threads: 9, tokens_per_day: 1_000_000 };
    const quotas = createQuotas(counters, QuotaConfig.parse({ user }), {
      threadMs: Number.POSITIVE_INFINITY,
    });
    const url = await bareServer(failing, { quotas });
    expect((await post(`${url}/threads/t/runs`, { input: "go", background: true })).status).toBe(202);
    fails = point;
    const thread = point === "active" ? "t" : "other";
    const refused = await post(`${url}/threads/${thread}/runs`, { input: "go", on_busy: "interrupt" });
    expect(refused.status).toBe(503);
    const [owner] = owners;
    if (!owner) return expect.fail();
    await expect.poll(async () => (await stores.quotas.held(owner)).user).toEqual({ streams: 0, ...held });
  },
);
