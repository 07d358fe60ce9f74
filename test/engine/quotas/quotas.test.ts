import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { z } from "zod";
import { append } from "../../../src/agent/core/document-log.ts";
import { retain } from "../../../src/agent/core/documents.ts";
import { NO_USAGE, userMessage } from "../../../src/agent/core/message.ts";
import type { Thread } from "../../../src/agent/core/records.ts";
import type { ThreadStore } from "../../../src/agent/core/stores.ts";
import { QuotaConfig } from "../../../src/engine/quotas/config.ts";
import { countedDocuments } from "../../../src/engine/quotas/counted-documents.ts";
import { admit, holdWhile, withHold } from "../../../src/engine/quotas/holds.ts";
import { createQuotas } from "../../../src/engine/quotas/index.ts";
import { createWithMessages } from "../../../src/engine/runs/thread-bytes.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { openMemoryQuotas } from "../../../src/engine/stores/sqlite/quotas.ts";

const ADA = { tenant: "acme", user: "ada" };
const BOB = { tenant: "acme", user: "bob" };
const NOON = Date.parse("2026-11-30T12:00:00.000Z");

function world(config: z.input<typeof QuotaConfig>) {
  let time = NOON;
  const store = openMemoryQuotas(() => time).quotas;
  const quotas = createQuotas(store, QuotaConfig.parse(config), { threadMs: Number.POSITIVE_INFINITY });
  const advance = (ms: number) => {
    time += ms;
  };
  return { quotas, store, advance };
}

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
    ["a price below nothing", { prices: { "*": { input: -1, output: 1 } } }],
    ["a limit on cost without a price for every model", { user: { cost_per_day: 1 }, prices: {} }],
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

  test("waits for other calls' reservations, or uses the rest if it cannot wait", async () => {
    const { quotas } = limited({ tokens_per_day: 10_000 });
    const first = await quotas.reserve(ADA, call(0, 6000));
    expect(await quotas.reserve(ADA, call(0, 6000))).toMatchObject({ isGranted: false, isSpent: false });
    expect(await quotas.reserve(ADA, call(0, 6000, true))).toMatchObject({ outputLimit: 4000 });
    expect(await quotas.reserve(ADA, call(0, 6000, true))).toMatchObject({
      isGranted: false,
      isSpent: false,
    });
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

describe("held resources", () => {
  const limited = () => world({ user: { threads: 1, streams: 1 } });
  const thread = (id: string) => ({ owner: ADA, id });

  test("no longer count if they could not be created, unless they existed before", async () => {
    const { quotas, store } = limited();
    const fails = () => Promise.reject(new Error("no"));
    await expect(withHold(quotas, thread("1"), fails)).rejects.toThrow("no");
    expect(await withHold(quotas, thread("1"), async () => "made")).toBe("made");
    await expect(withHold(quotas, thread("1"), fails)).rejects.toThrow("no");
    expect((await store.held(ADA)).user.threads).toBe(1);
    await expect(withHold(quotas, thread("2"), async () => "made")).rejects.toMatchObject({
      details: { limit: "threads" },
    });
  });

  test("an existing thread can be used above the limit", async () => {
    const { quotas, store } = limited();
    await admit(quotas, ADA, { thread: "1" });
    await expect(admit(quotas, ADA, { thread: "2" })).rejects.toThrow("`threads`");
    await admit(quotas, ADA, { thread: "2", isThreadKnown: async () => true });
    expect((await store.held(ADA)).user.threads).toBe(2);
  });

  test("a thread counts until it is deleted, if threads do not expire", async () => {
    const { quotas, store, advance } = limited();
    await withHold(quotas, thread("1"), async () => "made");
    advance(10 * 365 * 24 * 3_600_000);
    expect((await store.held(ADA)).user.threads).toBe(1);
    await quotas.release(ADA, "threads", "1");
    expect((await store.held(ADA)).user.threads).toBe(0);
  });

  describe("a thread that begins with a run", () => {
    const begun = async (isThreadKnown = async () => false) => {
      const { quotas, store, advance } = limited();
      const counted = async () => (await store.held(ADA)).user.threads;
      const begin = () => admit(quotas, ADA, { thread: "1", isThreadKnown });
      return { begin, counted, afterYears: () => advance(10 * 365 * 24 * 3_600_000) };
    };

    test("counts as long as it exists", async () => {
      const { begin, counted, afterYears } = await begun();
      await (await begin()).keepThread();
      afterYears();
      expect(await counted()).toBe(1);
    });

    test("counts for a while if the accepting process dies, but not if the run is refused", async () => {
      const { begin, counted, afterYears } = await begun();
      await begin();
      expect(await counted()).toBe(1);
      afterYears();
      expect(await counted()).toBe(0);
      await (await begin()).release();
      expect(await counted()).toBe(0);
    });

    test.each(["before", "after"])(
      "counts if another run on it is refused %s its own is accepted",
      async (when) => {
        const { begin, counted } = await begun();
        const [refused, accepted] = [await begin(), await begin()];
        if (when === "before") await refused.release();
        await accepted.keepThread();
        await refused.release();
        expect(await counted()).toBe(1);
      },
    );

    test("that was not counted is counted if it exists and its run is refused", async () => {
      const { begin, counted, afterYears } = await begun(async () => true);
      await (await begin()).release();
      afterYears();
      expect(await counted()).toBe(1);
    });
  });

  describe("a thread that begins with messages", () => {
    const YEAR = 365 * 24 * 3_600_000;
    const NEW = { id: "long", metadata: {}, messages: [userMessage("x".repeat(100))] };
    const begun = (create: ThreadStore["create"]) => {
      const { quotas, store, advance } = world({ user: { threads: 5, stored_bytes: 10_000 } });
      const threads = { create, bytes: async () => 200 };
      const creating = createWithMessages({ threads, quotas, threadBytes: undefined }, ADA, NEW);
      const counted = async () => [(await store.held(ADA)).user.threads, (await store.stored(ADA)).user];
      return { creating, counted, advance };
    };

    test("counts with its bytes as long as it exists", async () => {
      const { creating, counted, advance } = begun(async ({ tenant }) => ({ id: tenant }) as Thread);
      await creating;
      advance(YEAR);
      expect(await counted()).toEqual([1, 200]);
    });

    test("counts for ten minutes if the process that creates it dies", async () => {
      const { counted, advance } = begun(() => new Promise(() => {}));
      await expect.poll(counted).toEqual([1, expect.any(Number)]);
      await expect.poll(async () => (await counted())[1]).toBeGreaterThan(100);
      advance(10 * 60_000 + 1);
      expect(await counted()).toEqual([0, 0]);
    });
  });

  test("a run counts for a minute unless it starts or waits", async () => {
    const { quotas, store, advance } = world({ user: { concurrent_runs: 3 } });
    const runs = async () => (await store.held(ADA)).user.runs;
    for (const id of ["lost", "waits", "starts"]) await admit(quotas, ADA, { run: id });
    await quotas.keepWaiting(ADA, "waits");
    const started = holdWhile(quotas, { owner: ADA, thing: "runs", id: "starts" });
    advance(59_999);
    expect(await runs()).toBe(3);
    await quotas.refresh(ADA, "runs", "starts");
    advance(1);
    expect(await runs()).toBe(2);
    await started.release();
    expect(await runs()).toBe(1);
    advance(59 * 60_000);
    expect(await runs()).toBe(0);
  });

  test("active work counts until it is released or its process has died", async () => {
    const { quotas, store, advance } = limited();
    const kept = holdWhile(quotas, { owner: ADA, thing: "streams", id: "1" });
    expect((await store.held(ADA)).user.streams).toBe(1);
    await kept.release();
    await kept.release();
    expect((await store.held(ADA)).user.streams).toBe(0);
    const other = holdWhile(quotas, { owner: ADA, thing: "streams", id: "2" });
    advance(60_000);
    expect((await store.held(ADA)).user.streams).toBe(0);
    await other.release();
  });
});

describe("documents that count", () => {
  const history = { kind: "history", ...ADA };

  test("do so for their user and tenant until they are deleted, and are refused above either limit", async () => {
    const { quotas, store } = world({ user: { stored_bytes: 10 }, tenant: { stored_bytes: 15 } });
    const documents = countedDocuments(createMemoryStores().documents, quotas, new Set(["history"]));
    const refusedFor = (of: string) => ({ code: "limit_exceeded", details: { limit: "stored_bytes", of } });
    await append(documents, history, "12345");
    await append(documents, { kind: "other", ...ADA }, "not counted");
    expect(await store.stored(ADA)).toEqual({ tenant: 5, user: 5 });
    await expect(append(documents, history, "123456")).rejects.toMatchObject(refusedFor("user"));
    await append(documents, { kind: "history", ...BOB }, "1234567890");
    await expect(append(documents, history, "1")).rejects.toMatchObject(refusedFor("tenant"));
    await expect(append(documents, { kind: "history", tenant: "acme" }, "1")).rejects.toMatchObject(
      refusedFor("tenant"),
    );
    expect(await store.stored(ADA)).toEqual({ tenant: 15, user: 5 });
    await retain(documents, history, { count: 0 });
    expect(await store.stored(ADA)).toEqual({ tenant: 10, user: 0 });
    await append(documents, history, "12", { count: 1 });
    await append(documents, history, "345", { count: 1 });
    expect(await store.stored(ADA)).toEqual({ tenant: 13, user: 3 });
  });
});
