import { expect, onTestFinished, test, vi } from "vitest";
import { QuotaConfig } from "../../../src/engine/quotas/config.ts";
import { createQuotas } from "../../../src/engine/quotas/index.ts";
import { openMemoryQuotas } from "../../../src/engine/stores/sqlite/quotas.ts";
import { SILENT } from "../../../src/lib/logger.ts";

const ADA = { tenant: "acme", user: "ada" };

test("a model call keeps its reservation for as long as it lasts", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  let time = Date.parse("2026-11-30T12:00:00.000Z");
  const { quotas: store, close } = openMemoryQuotas(() => time);
  onTestFinished(close);
  const config = QuotaConfig.parse({ user: { tokens_per_day: 10_000 } });
  const quotas = createQuotas(store, config, { threadMs: 1000 });
  const reserved = async () => (await store.accounts(ADA)).user.reserved.tokens;
  const size = () => ({ input: 0, output: 6000 });
  const granted = await quotas.reserve(ADA, { model: "m", size, takesLess: false });
  if (!granted.isGranted) throw granted.error;
  // The end of another call ends nothing else.
  const other = await quotas.reserve(ADA, {
    model: "m",
    size: () => ({ input: 0, output: 500 }),
    takesLess: false,
  });
  await quotas.settle(ADA, other.isGranted ? other.id : "", undefined);
  for (let seconds = 0; seconds < 600; seconds += 15) {
    time += 15_000;
    await vi.advanceTimersByTimeAsync(15_000);
  }
  expect(await reserved()).toBe(6000);
  await quotas.settle(ADA, granted.id, undefined);
  expect(await reserved()).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
});

test("a reservation that the store does not extend is logged with the reason", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const { quotas: store, close } = openMemoryQuotas();
  onTestFinished(close);
  const full = new Error("The disk is full.");
  const logged: unknown[] = [];
  const logger = { ...SILENT, warn: (...line: unknown[]) => void logged.push(line) };
  const config = QuotaConfig.parse({ user: { tokens_per_day: 10_000 } });
  const failing = { ...store, extend: () => Promise.reject(full) };
  const quotas = createQuotas(failing, config, { threadMs: 1000, logger });
  const size = () => ({ input: 0, output: 6000 });
  const granted = await quotas.reserve(ADA, { model: "m", size, takesLess: false });
  if (!granted.isGranted) throw granted.error;
  await vi.advanceTimersByTimeAsync(15_000);
  expect(logged).toEqual([[{ err: full, tenant: "acme" }, "reservations could not be extended"]]);
  await quotas.settle(ADA, granted.id, undefined);
});
