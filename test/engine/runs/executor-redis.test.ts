import { afterAll, expect, test } from "vitest";
import { getRun } from "../../../src/engine/runs/control.ts";
import { createRedisStores } from "../../../src/engine/stores/redis/index.ts";
import { needing } from "../../support/needing.ts";
import { startRedis } from "../../support/redis.ts";
import { ADA, newRun } from "../stores/fixture.ts";
import { managed } from "./managed.ts";

const redis = await startRedis("--maxmemory-policy", "noeviction", "--databases", "100");
afterAll(() => redis?.close());
let databases = 0;
const open = () => createRedisStores({ url: `${redis?.url}/${databases++}`, leaseMs: 2000 });

needing(redis, "redis-server").describe("a run in a full Redis", () => {
  test("ends as failed, even before any output", async () => {
    const stores = await open();
    const news = newRun("t");
    await stores.runs.enqueue(ADA, news, "reject");
    redis?.ask("CONFIG", "SET", "maxmemory", "1");
    try {
      const { runs } = managed(stores);
      await runs.open();
      await expect
        .poll(async () => (await getRun(runs, { owner: ADA, thread_id: "t", run_id: news.id })).error?.code)
        .toBe("unavailable");
    } finally {
      redis?.ask("CONFIG", "SET", "maxmemory", "0");
    }
  });
});
