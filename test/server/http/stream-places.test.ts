import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { AppError } from "../../../src/agent/core/errors.ts";
import type { Stores } from "../../../src/agent/core/stores.ts";
import { OwnRuleSpec } from "../../../src/agent/hooks/permissions/rule.ts";
import { createHttpToolStore } from "../../../src/agent/tools/http/store.ts";
import { QuotaConfig } from "../../../src/engine/quotas/config.ts";
import { createQuotas, type Quotas } from "../../../src/engine/quotas/index.ts";
import type { QuotaStore } from "../../../src/engine/quotas/store.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { createTemporaryThreads } from "../../../src/engine/temporary-threads/index.ts";
import type { Owner } from "../../../src/protocol/ids.ts";
import { AuthConfig } from "../../../src/server/auth/config.ts";
import { createServer } from "../../../src/server/http/server.ts";
import { bent, managed } from "../../engine/runs/managed.ts";
import { ENDLESS_CREDENTIALS } from "../../support/credentials.ts";
import { NO_NOUNS } from "../../support/nouns.ts";
import { newPool } from "../../support/pool.ts";
import { post } from "../../support/sse.ts";

const MIB = 1024 * 1024;

async function serve(stores: Stores, { quotas, streams = 10 }: { quotas: Quotas; streams?: number }) {
  const script = [{ say: "a b c", delay_ms: 60_000 }];
  const { runs, agents } = managed(stores, { quotas, script });
  await runs.open();
  const backends = newPool({ dataDir: "/nonexistent" });
  const { owners, documents } = createMemoryStores();
  const logger = pino({ level: "silent" });
  const server = await createServer(
    {
      stores,
      admin: {
        runs,
        quotas,
        backends,
        records: [],
        owners,
        documents,
        sandboxes: async () => [],
        agents: () => [],
        forgetEngine: () => expect.fail(),
        backUp: () => expect.fail(),
      },
      ...NO_NOUNS,
      httpTools: createHttpToolStore(documents, MIB),
      temporaryThreads: createTemporaryThreads({
        stores: { ...stores, documents },
        ...{ quotas, logger, keepMs: 1000, most: 1 },
      }),
      runs,
      agents: {
        ...agents,
        list: () => [],
        ...{ seenWith: () => expect.fail(), choices: () => expect.fail(), changeable: () => ({}) },
      },
      backends,
      quotas,
      access: { auth: AuthConfig.parse({}), credentials: ENDLESS_CREDENTIALS, origins: [] },
      limits: {
        bodyBytes: 1000,
        incomingBytes: 100_000,
        bodyEntries: 1000,
        requestMs: 10_000,
        uploadBytes: 1000,
        streams,
        heartbeatMs: 10_000,
        stallMs: 10_000,
        unreadBytes: 1_000_000,
      },
      permissionRule: OwnRuleSpec,
      page: true,
      wires: [],
      isRefusedTool: async () => false,
      tryTool: () => expect.fail(),
      ...NO_NOUNS,
      dependencies: { states: async () => [] },
      version: "0",
    },
    logger,
  );
  onTestFinished(() => server.close());
  return server.listen({ port: 0, host: "127.0.0.1" });
}

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
  const url = await serve(slow, { quotas, streams: 1 });
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
    const url = await serve(failing, { quotas });
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
