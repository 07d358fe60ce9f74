import { describe, expect, test } from "vitest";
import type { z } from "zod";
import { NO_USAGE } from "../../../src/agent/core/message.ts";
import { QuotaConfig } from "../../../src/engine/quotas/config.ts";
import { onceAPeriod } from "../../../src/engine/quotas/near.ts";
import { ADA, BOB, world } from "./world.ts";

describe("the settings", () => {
  test("limit nothing and cost nothing by default", () => {
    expect(QuotaConfig.parse({})).toEqual({ tenant: {}, user: {}, soft: 0.8, prices: {} });
  });

  test("store money in whole millionths", () => {
    const { user, prices } = QuotaConfig.parse({
      user: { cost_per_day: 0.1 },
      prices: { "*": { input: 0.075, output: 3 } },
    });
    expect(user.cost_per_day).toBe(100_000);
    expect(prices["*"]).toEqual({ input: 75_000, output: 3_000_000 });
  });

  test.each([
    ["a limit of nothing", { user: { tokens_per_day: 0 } }],
    ["half a run", { user: { concurrent_runs: 1.5 } }],
    ["an unknown limit", { tenant: { request_per_minute: 5 } }],
    ["a broken pattern", { prices: { "a{b": { input: 1, output: 1 } } }],
    ["half a price", { prices: { "*": { input: 1 } } }],
    ["a warning after more than a whole budget", { soft: 1.01 }],
    ["a price below nothing", { prices: { "*": { input: -1, output: 1 } } }],
    ["a limit on cost without a price for every model", { user: { cost_per_day: 1 }, prices: {} }],
    ["a limit on a month's cost without one", { tenant: { cost_per_month: 1 }, prices: {} }],
  ])("refuse %s", (_, config) => {
    expect(QuotaConfig.safeParse(config).success).toBe(false);
  });
});

describe("a price", () => {
  const costs = async (prices: z.input<typeof QuotaConfig>["prices"], model: string, usage = {}) => {
    const { quotas } = world({ prices });
    await quotas.settle(ADA, "1", {
      agent: "a",
      model,
      usage: { ...NO_USAGE, input_tokens: 1000, ...usage },
    });
    return (await quotas.report(ADA, 1)).usage[0]?.cost;
  };
  const of = (input: number) => ({ input, output: 0 });

  test("is that of the model's own name, or else of the first matching pattern", async () => {
    const prices = { "*": of(1), "openai:gpt-5*": of(2), "openai:gpt-5": of(3) };
    expect(await costs(prices, "openai:gpt-5")).toBe(3000);
    expect(await costs(prices, "openai:gpt-5-mini")).toBe(1000);
    const { "*": rest, ...before } = prices;
    expect(await costs({ ...before, "*": rest }, "openai:gpt-5-mini")).toBe(2000);
    expect(await costs(before, "openai:o3")).toBe(0);
  });

  test("for a pattern applies to names with slashes", async () => {
    const prices = { "openrouter:*": of(2), "*": of(1) };
    expect(await costs(prices, "openrouter:meta/llama-4")).toBe(2000);
    expect(await costs({ "*": of(1) }, "openrouter:meta/llama-4")).toBe(1000);
  });

  test("for cached tokens is its own, or that of input", async () => {
    const usage = { cache_read_tokens: 600, cache_write_tokens: 300, output_tokens: 10 };
    const price = { input: 10, output: 100, cache_read: 1, cache_write: 12.5 };
    expect(await costs({ "*": price }, "m", usage)).toBe(1000 + 1000 + 600 + 3750);
    expect(await costs({ "*": { input: 10, output: 100 } }, "m", usage)).toBe(11_000);
  });

  test("is rounded up, so nothing is free", async () => {
    expect(await costs({ "*": of(0.01) }, "m", { input_tokens: 1 })).toBe(1);
  });

  test("handles any counts from a provider", async () => {
    const usage = { input_tokens: Number.NaN, output_tokens: -5, cache_read_tokens: 10 ** 30 };
    expect(await costs({ "*": of(10) }, "m", usage)).toBe(0);
    const price = { input: 10, output: 0, cache_read: 1 };
    expect(await costs({ "*": price }, "m", { cache_read_tokens: 2000 })).toBe(2000);
  });
});

describe("a refusal", () => {
  test("shows money in the unit of the settings, with the currency and the reset time", async () => {
    const prices = { "*": { input: 1000, output: 1000 } };
    const { quotas } = world({ user: { cost_per_day: 2 }, prices, currency: "EUR" });
    await quotas.settle(ADA, "1", { agent: "a", model: "m", usage: { ...NO_USAGE, output_tokens: 1620 } });
    const refused = await quotas.reserve(ADA, {
      model: "m",
      size: () => ({ input: 300, output: 500 }),
      takesLess: false,
    });
    if (refused.isGranted) throw new Error("There was no room.");
    expect(refused.error.message).toBe(
      "Your limit `cost_per_day`, 2.00 EUR, has 0.38 left, too little for a model call with about 300 tokens of input. It resets at 2026-12-01 00:00 UTC, in 12 h.",
    );
    expect(refused.error.details).toEqual({
      ...{ limit: "cost_per_day", of: "user", most: 2, used: 1.62, left: 0.38, currency: "EUR" },
      ...{ resets_at: "2026-12-01T00:00:00.000Z", retry_after_ms: 12 * 3_600_000 },
    });
  });

  test("happens before a run is accepted if its first model call would be refused", async () => {
    const { quotas } = world({ user: { tokens_per_day: 3000 } });
    const caller = { agent: "helper", threadId: "t" };
    const call = {
      model: "m",
      caller,
      size: () => ({ input: 900, fixed: 600, output: 400 }),
      takesLess: false,
    };
    const run = { agent: "helper", threadId: "t", model: undefined, size: () => 10, isRewound: false };
    const spend = (id: string, output_tokens: number) =>
      quotas.settle(ADA, id, { agent: "helper", model: "m", usage: { ...NO_USAGE, output_tokens } });
    const reserved = await quotas.reserve(ADA, call);
    await spend(reserved.isGranted ? reserved.id : "", 2000);
    // A reservation may be released, and another thread's first call may be larger.
    const other = await quotas.reserve(ADA, {
      ...{ model: "m", caller: { agent: "helper", threadId: "other" }, takesLess: false },
      size: () => ({ input: 700, fixed: 700, output: 300 }),
    });
    await quotas.assertFunds(ADA, { ...run, threadId: "new", size: () => 100 });
    await quotas.settle(ADA, other.isGranted ? other.id : "", undefined);
    // What is left is enough for a new thread, and too little for one that has so much in it.
    await quotas.assertFunds(ADA, { ...run, threadId: "new" });
    await quotas.assertFunds(ADA, { ...run, isRewound: true });
    await expect(quotas.assertFunds(ADA, run)).rejects.toMatchObject({
      code: "limit_exceeded",
      details: { limit: "tokens_per_day", left: 1000 },
    });
    await spend("2", 300);
    await expect(quotas.assertFunds(ADA, { ...run, threadId: "new" })).rejects.toMatchObject({
      details: { left: 700 },
    });
    await quotas.assertFunds(ADA, { ...run, agent: "other", threadId: "new" });
    await quotas.assertFunds(ADA, { ...run, threadId: "new", model: "another" });
    await quotas.assertFunds(BOB, run);
  });

  test("names the limit, its owner and the retry time", async () => {
    const { quotas, advance } = world({
      user: { requests_per_minute: 1, concurrent_runs: 1, tokens_per_month: 1000 },
      tenant: { tokens_per_day: 1000 },
    });
    await quotas.request(ADA);
    await expect(quotas.request(ADA)).rejects.toMatchObject({
      code: "limit_exceeded",
      message: "Your limit `requests_per_minute`, 1, is reached. Try again in 60 s.",
      details: { limit: "requests_per_minute", of: "user", most: 1, retry_after_ms: 60_000 },
    });
    await quotas.acquire(ADA, "runs", "1");
    await expect(quotas.acquire(ADA, "runs", "2")).rejects.toMatchObject({
      details: { limit: "concurrent_runs", of: "user", most: 1 },
    });
    await quotas.settle(ADA, "1", { agent: "a", model: "m", usage: { ...NO_USAGE, output_tokens: 1000 } });
    await expect(quotas.assertFunds(BOB)).rejects.toMatchObject({
      details: { limit: "tokens_per_day", of: "tenant", most: 1000, retry_after_ms: 12 * 3_600_000 },
    });
    advance(12 * 3_600_000);
    await quotas.assertFunds(BOB);
  });

  test("never happens if nothing is limited", async () => {
    const { quotas } = world({});
    for (let n = 0; n < 100; n++) {
      await quotas.request(ADA);
      await quotas.acquire(ADA, "streams", `${n}`);
    }
    expect((await quotas.report(ADA, 1)).limits).toEqual([]);
  });
});

test("the report contains every limit and its remainder", async () => {
  const { quotas } = world({
    user: { concurrent_runs: 2, threads: 1, tokens_per_day: 100 },
    tenant: { cost_per_month: 1, requests_per_minute: 5 },
    prices: { "*": { input: 2, output: 2 } },
  });
  await quotas.acquire(ADA, "runs", "1");
  await quotas.settle(ADA, "1", { agent: "a", model: "m", usage: { ...NO_USAGE, output_tokens: 150 } });
  expect((await quotas.report(ADA, 1)).limits).toEqual([
    {
      ...{ limit: "cost_per_month", of: "tenant", most: 1_000_000, used: 300, left: 999_700 },
      resets_at: "2026-12-01T00:00:00.000Z",
      in_units: { most: 1, used: 0.0003, left: 0.9997 },
    },
    {
      ...{ limit: "tokens_per_day", of: "user", most: 100, used: 150, left: 0 },
      resets_at: "2026-12-01T00:00:00.000Z",
    },
    { limit: "concurrent_runs", of: "user", most: 2, used: 1, left: 1 },
    { limit: "threads", of: "user", most: 1, used: 0, left: 1 },
  ]);
});

test("a warning that a budget is nearly used reaches each tenant once", () => {
  const told: string[] = [];
  const tell = onceAPeriod({ currency: undefined }, ({ tenant }) => void told.push(tenant));
  const budget = { limit: "tokens_per_day", of: "tenant", most: 10, used: 9, left: 1 } as const;
  for (const owner of [ADA, BOB, { tenant: "other", user: "ada" }])
    tell(owner, [{ ...budget, resets_at: "2026-12-01T00:00:00.000Z" }]);
  expect(told).toEqual(["acme", "other"]);
});
