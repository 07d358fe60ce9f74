// Calls whose results come later, among processes on one Redis.

import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { tokenHash } from "../../../src/agent/core/deferred-calls.ts";
import type { Stores } from "../../../src/agent/core/stores.ts";
import { createRedisStores } from "../../../src/engine/stores/redis/index.ts";
import { needing } from "../../support/needing.ts";
import { startRedis } from "../../support/redis.ts";
import { ADA } from "./fixture.ts";

const redis = await startRedis();
afterAll(() => redis?.close());

const START = Date.parse("2026-11-21T10:00:00.000Z");
const MINUTE = 60_000;

const CALL = {
  ...{ owner: ADA, thread_id: "t", run_id: "run_1", call_id: "call_1", tool: "weather" },
  ...{ token_hash: tokenHash("token"), expires_at: new Date(START + 30 * MINUTE).toISOString() },
};

needing(redis, "redis-server").describe("two processes", () => {
  let time = START;
  let one: Stores;
  let two: Stores;
  beforeEach(async () => {
    redis?.ask("FLUSHALL");
    time = START;
    const open = () => createRedisStores({ url: redis?.url ?? "", now: () => time });
    [one, two] = [await open(), await open()];
    await one.threads.create(ADA, { id: "t", metadata: {} });
    await one.deferredCalls.open(CALL);
    await one.deferredCalls.accept(CALL);
  });
  afterEach(async () => {
    await one.close();
    await two.close();
  });

  const keys = (pattern: string) => redis?.ask("KEYS", pattern).split("\n").filter(Boolean) ?? [];

  test("lose no call to a check of its thread that found nothing", async () => {
    await one.deferredCalls.open({ ...CALL, call_id: "call_2", token_hash: tokenHash("other") });
    await one.deferredCalls.deliver(tokenHash("other"), { result: 4 });
    await one.deferredCalls.forget({ ...CALL, call_id: "call_2" });
    expect(await two.deferredCalls.due(10)).toEqual([]);
    time = START + 30 * MINUTE;
    expect(await two.deferredCalls.due(10)).toMatchObject([{ call_ids: ["call_1"] }]);
  });

  test("leave nothing of a deleted call", async () => {
    const token = `sk:{token:${CALL.token_hash}}`;
    expect(Number(redis?.ask("PTTL", token))).toBeGreaterThan(30 * MINUTE);
    expect(Number(redis?.ask("PTTL", token))).toBeLessThanOrEqual(31 * MINUTE);
    await two.deferredCalls.deliver(CALL.token_hash, { result: 4 });
    await one.deferredCalls.forget(CALL);
    expect(await two.deferredCalls.due(10)).toEqual([]);
    await expect.poll(() => keys("sk:{token:*")).toEqual([]);
    expect(keys("*:deferred").concat(keys("*:replies"))).toEqual([]);
    expect(keys("sk:{deferred}*").filter((key) => !key.includes("taken"))).toEqual([]);
  });
});
