import { afterAll, expect, test } from "vitest";
import { NO_USAGE } from "../../../src/agent/core/message.ts";
import type { AllStores } from "../../../src/engine/stores/all-stores.ts";
import { createRedisStores } from "../../../src/engine/stores/redis/index.ts";
import { quotasContract } from "../../contracts/quotas.ts";
import { needing } from "../../support/needing.ts";
import { startCluster, startRedis } from "../../support/redis.ts";
import { ADA, PATIENT } from "./fixture.ts";

const redis = await startRedis("--databases", "200");
afterAll(() => redis?.close());

let databases = 0;
const emptyDatabase = () => `${redis?.url}/${databases++}`;
const open = (url = emptyDatabase(), now?: () => number) =>
  createRedisStores({ url, ...PATIENT, ...(now ? { now } : {}) });

const SPENT = { agent: "a", model: "m", cost: 5, usage: { ...NO_USAGE, input_tokens: 10 } };
const useAll = async ({ quotas }: AllStores) => {
  await quotas.take(ADA, { tenant: 10, user: 10 });
  for (const thing of ["runs", "streams", "threads"] as const)
    await quotas.hold(ADA, { thing, id: "1", ms: 60_000 }, { tenant: 1, user: 1 });
  const amounts = { tokens: 1, cost: 1 };
  await quotas.reserve(ADA, { id: "1", amounts, ms: 60_000 }, { tenant: {}, user: {} });
  await quotas.settle(ADA, "2", SPENT);
};

needing(redis, "redis-server").describe("in Redis", () => {
  quotasContract(async (now) => {
    const url = emptyDatabase();
    return { ...(await open(url, now)), elsewhere: await open(url, now) };
  });

  test("time is Redis's own", async () => {
    const { quotas, close } = await open();
    const [seconds] = redis?.ask("TIME").split("\n") ?? [];
    await quotas.settle(ADA, "1", SPENT);
    const { now, user } = await quotas.accounts(ADA);
    expect(Math.abs(now - Number(seconds) * 1000)).toBeLessThan(60_000);
    expect(user.month.tokens).toBe(10);
    await close();
  });

  test("everything expires, and no key contains a person's name", async () => {
    const database = databases;
    const opened = await open();
    await useAll(opened);
    await opened.close();
    const ask = (...command: string[]) => redis?.ask("-n", String(database), ...command) ?? "";
    const keys = ask("KEYS", "*")
      .split("\n")
      .filter((key) => !/^sk:\{(deployment|format|secret|sandboxes|owners)\}/.test(key));
    expect(keys).toHaveLength(16);
    for (const key of keys) {
      expect(key).toMatch(/^sk:\{[\w-]{22}\}:(rate|held|spent|reserved|usage|settled)(:|$)/);
      expect(key).not.toMatch(/acme|ada/);
      expect(Number(ask("PTTL", key)), key).toBeGreaterThan(0);
    }
  });

  test("a settled call leaves nothing of its reservation", async () => {
    const database = databases;
    const { quotas, close } = await open();
    for (const [id, spent] of [
      ["1", SPENT],
      ["2", undefined],
    ] as const) {
      const amounts = { tokens: 12, cost: 0 };
      await quotas.reserve(ADA, { id, amounts, ms: 60_000 }, { tenant: {}, user: {} });
      await quotas.settle(ADA, id, spent);
    }
    await close();
    const ask = (...command: string[]) => redis?.ask("-n", String(database), ...command) ?? "";
    const reserved = ask("KEYS", "*reserved").split("\n")[0] ?? "";
    expect(ask("HGETALL", reserved).split("\n")).toEqual(["tokens", "0", "cost", "0"]);
    expect(ask("KEYS", "*due")).toBe("");
  });
});

const nodes = await startCluster();
afterAll(() => Promise.all(nodes?.map((node) => node.close()) ?? []));

needing(nodes, "redis-server").test("a cluster supports them too", async () => {
  const opened = await open(nodes?.[0]?.url);
  await useAll(opened);
  expect((await opened.quotas.accounts(ADA)).tenant).toMatchObject({
    day: { tokens: 10, cost: 5 },
    reserved: { tokens: 1, cost: 1 },
  });
  expect(await opened.quotas.usage(ADA, 1)).toHaveLength(1);
  expect((await opened.quotas.tenantUsage(ADA.tenant, 1)).users).toMatchObject([{ user: ADA.user }]);
  await opened.close();
});
