import { describe, expect, test } from "vitest";
import type { z } from "zod";
import { AppError } from "../../../src/agent/core/errors.ts";
import { toolMessages, unanswered, userMessage } from "../../../src/agent/core/message.ts";
import type { Model } from "../../../src/agent/core/model.ts";
import { metering } from "../../../src/agent/hooks/metering.ts";
import { retry } from "../../../src/agent/hooks/retry.ts";
import { summarization } from "../../../src/agent/hooks/summarization/index.ts";
import { scriptedModel, type Turn } from "../../../src/agent/models/scripted.ts";
import { QuotaConfig } from "../../../src/engine/quotas/config.ts";
import { createQuotas, type Quotas } from "../../../src/engine/quotas/index.ts";
import { openMemoryQuotas } from "../../../src/engine/stores/sqlite/quotas.ts";
import { type Play, plainTool, play } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";
import { made } from "./made.ts";

const ADA = { tenant: "acme", user: "ada" };
const OVER = { status: "error", stop_reason: "quota" };

function world(config: z.input<typeof QuotaConfig> = {}) {
  const store = openMemoryQuotas().quotas;
  const quotas = createQuotas(store, QuotaConfig.parse(config), { threadMs: 3_600_000 });
  return {
    quotas,
    store,
    play: (what: Play) => play({ ...what, hooks: [...(what.hooks ?? []), hook(quotas)] }),
  };
}
const hook = (quotas: Quotas) => made(metering, { quotas });

const work = plainTool("work", () => "worked");
const PLAIN = { tool_calls: [], reasoning: [], stop_reason: "end_turn" } as const;
/** A model that works on and on, and reads and writes 1000 tokens each time. */
const working: Turn = { call: [{ tool: "work" }], usage: { input_tokens: 600, output_tokens: 400 } };
const onAndOn = { script: () => working, tools: [work] };

test("without quotas, the hook does nothing", async () => {
  expect(Object.keys(made(metering))).toEqual(["name"]);
});

describe("a run's usage", () => {
  test("is counted by agent and model, with its price", async () => {
    const { quotas, play } = world({
      prices: { "scripted:*": { input: 3, output: 15, cache_read: 0.3 }, "*": { input: 1000, output: 1000 } },
    });
    await play({
      script: [
        working,
        { say: "done", usage: { input_tokens: 1000, output_tokens: 10, cache_read_tokens: 900 } },
      ],
      tools: [work],
    });
    const { usage } = await quotas.report(ADA, 1);
    expect(usage).toMatchObject([{ agent: "test", calls: 2, input_tokens: 1600, output_tokens: 410 }]);
    // 600 × 3 + 400 × 15, and 100 × 3 + 900 × 0.3 + 10 × 15
    expect(usage[0]?.cost).toBe(7800 + 720);
  });

  test("includes that of its summaries", async () => {
    const { quotas, play } = world();
    let asked = 0;
    const script = () => ({ say: "ok", usage: { input_tokens: 10 ** asked++ } });
    const agent = { context_window: 1000 };
    const messages = Array.from({ length: 20 }, (_, n) => userMessage(`${n} ${"word ".repeat(100)}`));
    await play({ script, input: { messages }, hooks: [made(summarization, { agent })] });
    expect(asked).toBe(2);
    expect((await quotas.report(ADA, 1)).usage).toMatchObject([{ calls: 2, input_tokens: 11 }]);
  });

  test("is zero for a call that failed before any output", async () => {
    const { quotas, store, play } = world({ user: { tokens_per_day: 100_000 } });
    const { outcome } = await play({ script: [{ fail: { code: "model_auth" } }] });
    expect(outcome.status).toBe("error");
    expect((await quotas.report(ADA, 1)).usage).toEqual([]);
    expect((await store.accounts(ADA)).user.reserved).toEqual({ tokens: 0, cost: 0 });
  });

  test("includes every attempt that was answered", async () => {
    const { quotas, play } = world();
    await play({
      script: [{ fail: { code: "model_overloaded" } }, { say: "ok", usage: { input_tokens: 5 } }],
      hooks: [made(retry, { options: { base_ms: 1 } })],
    });
    expect((await quotas.report(ADA, 1)).usage).toMatchObject([{ calls: 1, input_tokens: 5 }]);
  });

  test("is estimated, the same for the budget and the run, if the run is cancelled during an answer", async () => {
    const { quotas, store, play } = world({ user: { tokens_per_day: 100_000 } });
    const cancel = new AbortController();
    const { outcome, events } = await play({
      script: [{ say: "one two three four five", delay_ms: 1 }],
      input: { signal: cancel.signal },
      onEvent: (event) => {
        if (event.event === "on_chat_model_stream") cancel.abort();
      },
    });
    expect(outcome.status).toBe("cancelled");
    const [row] = (await quotas.report(ADA, 1)).usage;
    const { input_tokens = 0, output_tokens = 0 } = row ?? {};
    expect(Math.min(input_tokens, output_tokens)).toBeGreaterThan(0);
    expect(dataOf(events, "done")[0]?.usage).toMatchObject({ estimated: true, input_tokens, output_tokens });
    expect((await store.accounts(ADA)).user.reserved).toEqual({ tokens: 0, cost: 0 });
  });

  test.each([
    ["nothing", { input_tokens: 0, output_tokens: 0 }],
    ["less than nothing", { input_tokens: -5, output_tokens: -1 }],
    ["no number", { input_tokens: Number.NaN, output_tokens: Number.NaN }],
    ["more than can be", { input_tokens: 1e308, output_tokens: 1e308 }],
  ])("has the same estimate for the budget and the run if the provider counts %s", async (_, usage) => {
    const { quotas, play } = world({ prices: { "*": { input: 1000, output: 1000 } } });
    const model: Model = {
      name: "odd:model",
      async *stream() {
        const none = { cache_read_tokens: 0, cache_write_tokens: 0 };
        return { content: "four times four!", ...PLAIN, usage: { ...usage, ...none } };
      },
    };
    const { events } = await play({ model, input: { costOf: quotas.costOf } });
    const [row] = (await quotas.report(ADA, 1)).usage;
    const [end] = dataOf(events, "done");
    expect(end?.usage).toMatchObject({ estimated: true, output_tokens: 4 });
    expect(end?.usage.input_tokens).toBeGreaterThan(0);
    for (const key of ["input_tokens", "output_tokens", "cost"] as const)
      expect(end?.usage[key]).toBe(row?.[key]);
  });

  test("is not estimated if the provider counts all of it", async () => {
    const { play } = world();
    const { events } = await play({ script: [{ say: "ok", usage: { input_tokens: 5, output_tokens: 2 } }] });
    expect(dataOf(events, "done")[0]?.usage).not.toHaveProperty("estimated");
  });
});

describe("a budget", () => {
  test("that is used up ends the run, and its work is kept", async () => {
    const { quotas, play } = world({ user: { tokens_per_day: 2500 } });
    const { outcome, messages, events } = await play(onAndOn);
    expect(outcome).toMatchObject(OVER);
    expect(toolMessages(messages).map(({ content }) => content)).toEqual(["worked", "worked", "worked"]);
    expect(unanswered(messages)).toEqual([]);
    expect(dataOf(events, "warning").at(-1)).toMatchObject({
      code: "quota",
      message: expect.stringMatching(
        /^Your limit `tokens_per_day`, 2500, is reached\. It resets at \S+ 00:00 UTC, in \d.*\.$/,
      ),
    });
    await expect(quotas.assertFunds(ADA)).rejects.toMatchObject({ code: "limit_exceeded" });
  });

  test("for costs ends the run too", async () => {
    const { play, quotas } = world({
      tenant: { cost_per_month: 0.025 },
      prices: { "*": { input: 10, output: 10 } },
    });
    const { outcome, messages } = await play(onAndOn);
    expect(outcome).toMatchObject(OVER);
    expect(toolMessages(messages)).toHaveLength(3);
    expect((await quotas.report(ADA, 1)).limits).toMatchObject([
      { limit: "cost_per_month", of: "tenant", most: 25_000, used: 30_000, left: 0 },
    ]);
  });

  test("that is nearly used up is reported once per run", async () => {
    const { play } = world({ user: { tokens_per_day: 5000, tokens_per_month: 5000 }, soft: 0.5 });
    const { events } = await play(onAndOn);
    const warnings = dataOf(events, "warning").map(({ message }) => message);
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toMatch(/^Your limit `tokens_per_day` is nearly used up: 3000 of 5000, until /);
  });

  test("is exceeded by at most one call, however many runs use it at once", async () => {
    const { play, quotas, store } = world({ tenant: { tokens_per_day: 100_000 } });
    const runs = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        play({ ...onAndOn, maxIterations: 3, input: { owner: { tenant: "acme", user: `user-${n % 10}` } } }),
      ),
    );
    const { tenant } = await store.accounts(ADA);
    expect(tenant.day.tokens).toBe(100_000);
    expect(tenant.reserved.tokens).toBe(0);
    const steps = runs.flatMap(({ messages }) => toolMessages(messages));
    expect(steps).toHaveLength(100);
    expect(runs.some(({ outcome }) => outcome.stop_reason === "quota")).toBe(true);
    await expect(quotas.assertFunds(ADA)).rejects.toMatchObject({ details: { of: "tenant" } });
  });

  test("that is fully reserved makes calls wait, but not those of a cancelled run", async () => {
    const { play, quotas } = world({ user: { tokens_per_day: 10_000 } });
    const size = () => ({ input: 0, output: 10_000 });
    const other = await quotas.reserve(ADA, { model: "m", size, takesLess: false });
    if (!other.isGranted) throw new Error("There was room.");
    const cancel = new AbortController();
    const cancelled = play({ input: { signal: cancel.signal } });
    const waiting = play({});
    cancel.abort();
    expect((await cancelled).outcome.status).toBe("cancelled");
    await quotas.settle(ADA, other.id);
    expect((await waiting).outcome.status).toBe("success");
  });

  test("that cannot be read fails the run with an error", async () => {
    const { quotas } = world();
    const gone = new AppError("unavailable", "gone");
    const broken: Quotas = { ...quotas, reserve: () => Promise.reject(gone) };
    const { outcome } = await play({ hooks: [hook(broken)] });
    expect(outcome).toMatchObject({ status: "error", error: { code: "unavailable" } });
  });

  test("does not apply to another tenant", async () => {
    const { play } = world({ user: { tokens_per_day: 1000 } });
    expect((await play(onAndOn)).outcome).toMatchObject(OVER);
    const model = scriptedModel([{ say: "ok" }]);
    const owner = { tenant: "acme", user: "bob" };
    expect((await play({ model, input: { owner } })).outcome.status).toBe("success");
  });
});
