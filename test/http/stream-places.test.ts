import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { OwnRuleSpec } from "../../src/hooks/permissions/rule.ts";
import { AuthConfig } from "../../src/http/auth/config.ts";
import { createServer } from "../../src/http/server.ts";
import { QuotaConfig } from "../../src/quotas/config.ts";
import { createQuotas } from "../../src/quotas/index.ts";
import { createMemoryStores } from "../../src/stores/memory/index.ts";
import { createHttpToolStore } from "../../src/tools/http/registration.ts";
import { bent, managed } from "../runs/managed.ts";
import { newPool } from "../support/pool.ts";
import { post } from "../support/sse.ts";

test("a stream has its place before its run starts: no run starts for a client that is refused", async () => {
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
  const { runs, agents } = managed(slow);
  await runs.open();
  const server = await createServer(
    {
      stores: slow,
      httpTools: createHttpToolStore(stores.documents),
      runs,
      agents: { ...agents, list: () => [], seenWith: () => expect.fail(), changeable: () => ({}) },
      backends: newPool({ dataDir: "/nonexistent" }),
      quotas: createQuotas(stores.quotas, QuotaConfig.parse({}), { threadMs: 1000 }),
      access: { auth: AuthConfig.parse({}), origins: [] },
      limits: { bodyBytes: 1000, uploadBytes: 1000, streams: 1, heartbeatMs: 10_000, stallMs: 10_000 },
      permissionRule: OwnRuleSpec,
      isRefusedTool: async () => false,
      version: "0",
    },
    pino({ level: "silent" }),
  );
  onTestFinished(() => server.close());
  const url = await server.listen({ port: 0, host: "127.0.0.1" });
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
