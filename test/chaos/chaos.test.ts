// The short form of `npm run chaos`.

import { afterAll, expect, test } from "vitest";
import { needing } from "../support/needing.ts";
import { startRedis } from "../support/redis.ts";
import { chaos } from "./chaos.ts";
import { reportOf } from "./report.ts";

const redis = await startRedis("--appendonly", "yes", "--appendfsync", "always");
afterAll(() => redis?.close());

const SEED = "1";

needing(redis, "redis-server").describe("three servers on one Redis", () => {
  test("keep their promises while they are killed, stopped and drained, and Redis is restarted", async () => {
    const outcome = await chaos({
      ...{ seconds: 12, replicas: 3, users: 12, seed: SEED, keep: false, redis },
      faults: ["kill", "stop", "drain", "redis-restart", "disconnect"],
    });
    expect(outcome.faults, reportOf(outcome)).toEqual([]);
    const times = (...what: string[]) => what.reduce((sum, each) => sum + (outcome.counts.get(each) ?? 0), 0);
    expect(times("runs accepted")).toBeGreaterThan(0);
    expect(times("kills", "stops", "drains")).toBeGreaterThan(0);
    expect(times("restarts of Redis")).toBeGreaterThan(0);
  }, 600_000);
});
