import { expect, onTestFinished, test, vi } from "vitest";
import { ActiveRuns } from "../../../src/engine/runs/active-runs.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { SILENT } from "../../../src/lib/logger.ts";
import { claimed, done } from "../stores/fixture.ts";

test("a renewal that coincides with the end of its run does not count as a loss: nothing is stopped or logged", async () => {
  const stores = createMemoryStores();
  const lines: string[] = [];
  const note = (_: unknown, line: string) => void lines.push(line);
  const logger = { info: note, warn: note, error: note, debug: note } as never;
  const runs = new ActiveRuns({ stores, logger });
  const claim = await claimed(stores, "t");
  const active = runs.add(claim);
  await stores.events.append(claim.lease, [done()]);
  await runs.renewAll();
  expect(lines).toEqual([]);
  expect(active.abort.signal.aborted).toBe(false);
  await stores.close();
});

test("a run whose process died delays others until it ends, for at most two minutes", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const stores = createMemoryStores();
  const runs = new ActiveRuns({ stores, logger: SILENT });
  runs.add(await claimed(stores, "t"));
  expect(runs.mostDeaths).toBe(Number.POSITIVE_INFINITY);
  runs.add({ ...(await claimed(stores, "died")), deaths: 1 });
  expect(runs.mostDeaths).toBe(1);
  const tried = { ...(await claimed(stores, "u")), deaths: 2 };
  const active = runs.add(tried);
  vi.advanceTimersByTime(119_000);
  await runs.renewAll();
  expect(runs.mostDeaths).toBe(0);
  await runs.remove(active);
  expect(runs.mostDeaths).toBe(1);
  runs.add(tried);
  vi.advanceTimersByTime(121_000);
  expect(runs.mostDeaths).toBe(0);
  await runs.renewAll();
  expect(runs.mostDeaths).toBe(Number.POSITIVE_INFINITY);
  await stores.close();
});
