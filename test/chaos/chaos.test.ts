// The short form of `npm run chaos`, on one store. The long form runs each night on each.

import { afterAll, expect, test } from "vitest";
import { needing } from "../support/needing.ts";
import { seedOr } from "../support/seed.ts";
import { sharedRedis } from "../support/shared-stores.ts";
import { chaos } from "./chaos.ts";
import { reportOf } from "./report.ts";

const SEED = String(seedOr(1));

const shared = await sharedRedis();
afterAll(() => shared?.close());

needing(shared, "redis-server").describe("three servers on one redis-server", () => {
  test("keep their promises while servers are killed, stopped and drained, and the store is restarted", async () => {
    const outcome = await chaos({
      ...{ seconds: 12, replicas: 3, users: 12, seed: SEED, keep: false, shared },
      faults: ["kill", "stop", "drain", "store-restart", "disconnect"],
    });
    expect(outcome.faults, reportOf(outcome)).toEqual([]);
    const times = (...what: string[]) => what.reduce((sum, each) => sum + (outcome.counts.get(each) ?? 0), 0);
    expect(times("runs accepted")).toBeGreaterThan(0);
    expect(times("kills", "stops", "drains")).toBeGreaterThan(0);
    expect(times("restarts of the store")).toBeGreaterThan(0);
  }, 600_000);
});
