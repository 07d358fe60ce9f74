import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { z } from "zod";
import { NO_USAGE } from "../../../src/agent/core/message.ts";
import type { QuotaConfig } from "../../../src/engine/quotas/config.ts";
import { ADA, world } from "./world.ts";

describe("a model call", () => {
  const call = (input: number, output: number, takesLess = false) => ({
    ...{ model: "m", size: () => ({ input, output }), takesLess },
  });
  const used = (input_tokens: number, output_tokens: number) => ({
    ...{ agent: "a", model: "m", usage: { ...NO_USAGE, input_tokens, output_tokens } },
  });
  const limited = (user: z.input<typeof QuotaConfig>["user"], output = 10) =>
    world({ user, prices: { "*": { input: 1, output, cache_write: 2 } } });

  test("of a dead process keeps its reservation for at most 45 seconds", async () => {
    const { quotas, advance } = limited({ tokens_per_day: 10_000 });
    expect(await quotas.reserve(ADA, call(0, 10_000))).toMatchObject({ isGranted: true });
    advance(44_999);
    expect(await quotas.reserve(ADA, call(0, 10_000))).toMatchObject({ isGranted: false, isSpent: false });
    advance(1);
    expect(await quotas.reserve(ADA, call(0, 10_000))).toMatchObject({ isGranted: true });
  });

  test("is sent the reserved limit", async () => {
    const { quotas, store } = limited({ tokens_per_day: 10_000 });
    expect(await quotas.reserve(ADA, call(1000, 4000))).toMatchObject({ isGranted: true, outputLimit: 4000 });
    // Its input may all go into the cache, which costs more.
    expect((await store.accounts(ADA)).user.reserved).toEqual({ tokens: 5000, cost: 42_000 });
  });

  describe("reserves the searches of its provider", () => {
    const searching = (least: number, takesLess = false) => ({
      ...{ model: "m", takesLess, size: () => ({ input: 1000, output: 1000, searches: { most: 5, least } }) },
    });
    const priced = (cost_per_day: number) =>
      world({ user: { cost_per_day }, prices: { "*": { input: 1, output: 1, web_search: 10 } } });

    test("with their price", async () => {
      const { quotas, store } = priced(1);
      expect(await quotas.reserve(ADA, searching(0))).toMatchObject({ isGranted: true, searchLimit: 5 });
      expect((await store.accounts(ADA)).user.reserved.cost).toBe(52_000);
      const counted = { ...NO_USAGE, input_tokens: 1000, output_tokens: 1000, web_searches: 1 };
      const { id } = (await quotas.reserve(ADA, searching(0))) as { id: string };
      await quotas.settle(ADA, id, { agent: "a", model: "m", usage: counted });
      expect((await store.accounts(ADA)).user).toMatchObject({
        reserved: { cost: 52_000 },
        day: { cost: 12_000 },
      });
    });

    test.each([
      [0.0325, 3, 1000],
      [0.0315, 3, 500],
      [0.031, 2, 1000],
      [0.0115, 1, 500],
      [0.01, 0, 1000],
    ])(
      "but only as many as the budget pays beside the shortest answer: %d",
      async (cost, searchLimit, outputLimit) => {
        expect(await priced(cost).quotas.reserve(ADA, searching(0))).toMatchObject({
          ...{ isGranted: true, searchLimit, outputLimit },
        });
      },
    );

    test("and is refused if the budget does not pay those that it always makes", async () => {
      expect(await priced(0.0215).quotas.reserve(ADA, searching(2))).toMatchObject({ searchLimit: 2 });
      expect(await priced(0.0205).quotas.reserve(ADA, searching(2))).toMatchObject({
        ...{ isGranted: false, isSpent: true },
      });
    });

    test("and makes fewer while other calls have reserved their price, if it accepts that", async () => {
      const { quotas } = priced(0.06);
      expect(await quotas.reserve(ADA, searching(0))).toMatchObject({ searchLimit: 5 });
      expect(await quotas.reserve(ADA, searching(0, true))).toMatchObject({
        isGranted: true,
        searchLimit: 0,
      });
    });

    test("and a run is refused if the budget does not pay those that it always makes", async () => {
      const { quotas } = priced(0.03);
      const caller = { agent: "a", threadId: "t" };
      const { id } = (await quotas.reserve(ADA, { ...searching(2), caller })) as { id: string };
      const usage = { ...NO_USAGE, input_tokens: 1000, output_tokens: 1000, web_searches: 1 };
      await quotas.settle(ADA, id, { agent: "a", model: "m", usage });
      const run = { ...caller, model: undefined, size: () => 0, isRewound: false };
      await expect(quotas.assertFunds(ADA, run)).rejects.toThrow(
        "too little for a model call with about 1000 tokens of input and 2 web searches",
      );
    });

    test("and waits while other calls have reserved their price", async () => {
      const { quotas } = priced(0.06);
      expect(await quotas.reserve(ADA, searching(0))).toMatchObject({ searchLimit: 5 });
      expect(await quotas.reserve(ADA, searching(0))).toMatchObject({ isGranted: false, isSpent: false });
    });
  });

  test("gets the remaining tokens or money", async () => {
    const tokens = limited({ tokens_per_day: 3000 });
    expect(await tokens.quotas.reserve(ADA, call(1000, 4000))).toMatchObject({ outputLimit: 2000 });
    const money = limited({ cost_per_day: 0.03, tokens_per_day: 4000 });
    expect(await money.quotas.reserve(ADA, call(1000, 4000))).toMatchObject({ outputLimit: 2800 });
    const free = limited({ cost_per_day: 0.03 }, 0);
    expect(await free.quotas.reserve(ADA, call(1000, 4000))).toMatchObject({ outputLimit: 4000 });
  });

  test("is refused if too little is left, and the error contains the amount", async () => {
    const { quotas } = limited({ tokens_per_day: 3000 });
    const refused = await quotas.reserve(ADA, call(2800, 4000));
    if (refused.isGranted) throw new Error("There was no room.");
    expect(refused.isSpent).toBe(true);
    expect(refused.error.message).toMatch(
      /^Your limit `tokens_per_day`, 3000, has 3000 left, too little for a model call with about 2800 tokens of input\. It resets at 2026-12-01 00:00 UTC, in 12 h\.$/,
    );
    expect(await quotas.reserve(ADA, call(2800, 100))).toMatchObject({ isGranted: true });
  });

  test("is refused if a budget is spent, even if its model costs nothing", async () => {
    const { quotas } = limited({ cost_per_day: 0.001 }, 0);
    await quotas.settle(ADA, "1", used(1000, 0));
    expect(await quotas.reserve(ADA, call(0, 100))).toMatchObject({ isGranted: false, isSpent: true });
  });

  test("warns once the soft limit is reached, and too few tokens for an answer refuse a run", async () => {
    const { quotas } = limited({ tokens_per_day: 1000 });
    await quotas.settle(ADA, "1", used(800, 0));
    expect(await quotas.reserve(ADA, call(0, 100))).toMatchObject({
      soft: expect.stringContaining("800 of 1000"),
    });
    await expect(quotas.assertFunds(ADA)).rejects.toThrow("has 200 left, too little for a model call");
  });

  test("that is too large is refused by the budget with the smallest part left", async () => {
    const { quotas } = limited({ tokens_per_day: 3000, tokens_per_month: 3600 });
    await quotas.settle(ADA, "1", used(1000, 0));
    expect(await quotas.reserve(ADA, call(2500, 400))).toMatchObject({
      error: { details: { limit: "tokens_per_day", left: 2000 } },
    });
  });

  test("waits for other calls' reservations, or uses the rest if it cannot wait", async () => {
    const { quotas } = limited({ tokens_per_day: 10_000 });
    const first = await quotas.reserve(ADA, call(0, 6000));
    expect(await quotas.reserve(ADA, call(0, 6000))).toMatchObject({ isGranted: false, isSpent: false });
    expect(await quotas.reserve(ADA, call(0, 6000, true))).toMatchObject({ outputLimit: 4000 });
    expect(await quotas.reserve(ADA, call(0, 6000, true))).toMatchObject({
      isGranted: false,
      isSpent: false,
    });
    // Also a call with a short answer waits.
    expect(await quotas.reserve(ADA, call(0, 100))).toMatchObject({ isGranted: false, isSpent: false });
    await quotas.settle(ADA, first.isGranted ? first.id : "", used(0, 1000));
    expect(await quotas.reserve(ADA, call(0, 5000))).toMatchObject({ outputLimit: 5000 });
  });

  test("never exceeds a budget, for random simultaneous calls", async () => {
    const size = fc.record({
      input: fc.nat(2000),
      output: fc.integer({ min: 1, max: 9000 }),
      part: fc.nat(100),
    });
    const calls = fc.array(size, { minLength: 1, maxLength: 40 });
    const budget = fc.integer({ min: 256, max: 50_000 });
    await fc.assert(
      fc.asyncProperty(calls, budget, fc.boolean(), async (all, most, ofMoney) => {
        const { quotas, store } = limited(ofMoney ? { cost_per_day: most / 1e6 } : { tokens_per_day: most });
        const make = async ({ input, output, part }: (typeof all)[number]) => {
          const reserved = await quotas.reserve(ADA, call(input, output, part > 50));
          if (!reserved.isGranted) return;
          expect(reserved.outputLimit).toBeLessThanOrEqual(output);
          const answered = Math.floor((Number(reserved.outputLimit) * part) / 100);
          await quotas.settle(ADA, reserved.id, used(input, answered));
        };
        await Promise.all(all.map(make));
        const { day, reserved } = (await store.accounts(ADA)).user;
        expect(ofMoney ? day.cost : day.tokens).toBeLessThanOrEqual(most);
        expect(reserved).toEqual({ tokens: 0, cost: 0 });
      }),
    );
  });
});
