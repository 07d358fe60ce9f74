import { expect, test } from "vitest";
import { ActiveRuns } from "../../src/runs/active-runs.ts";
import { createMemoryStores } from "../../src/stores/memory/index.ts";
import { claimed, done } from "../stores/fixture.ts";

test("a renewal that meets the end of its run is no loss: nothing is stopped, and the log has no line", async () => {
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
