import { expect, test } from "vitest";
import { AppError } from "../../../src/agent/core/errors.ts";
import { followThread } from "../../../src/engine/runs/follow.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { ADA } from "../stores/fixture.ts";
import { bent, managed } from "./managed.ts";

const { signal } = new AbortController();

test("a viewer of a thread finds a run even if its notification was lost", async () => {
  const stores = createMemoryStores();
  const bus = { publish() {}, announce() {}, subscribe: stores.bus.subscribe.bind(stores.bus) };
  const { runs, start } = managed({ ...stores, bus }, { script: () => ({ say: "ok" }) });
  await runs.open();
  await stores.threads.create(ADA, { id: "t", metadata: {} });
  const first = followThread(runs.stores, { owner: ADA, threadId: "t" }, signal).next();
  // By now it listens.
  await new Promise((resolve) => setImmediate(resolve));
  const { id } = await start(ADA, "go", "t");
  expect(await first).toMatchObject({ value: { run: { id }, after: { seq: 0 } } });
});

test("a viewer of a thread keeps following after a store outage", async () => {
  const stores = createMemoryStores();
  const asked = Promise.withResolvers<void>();
  let isAway = true;
  const shaky = bent(stores, {
    async begun(...args) {
      if (args[2] === undefined || !isAway) return stores.runs.begun(...args);
      asked.resolve();
      throw new AppError("unavailable", "The store is away.");
    },
  });
  const { runs, start } = managed(shaky, { script: () => ({ say: "ok" }) });
  await runs.open();
  await stores.threads.create(ADA, { id: "t", metadata: {} });
  const first = followThread(runs.stores, { owner: ADA, threadId: "t" }, signal).next();
  await asked.promise;
  isAway = false;
  const { id } = await start(ADA, "go", "t");
  expect(await first).toMatchObject({ value: { run: { id }, after: { seq: 0 } } });
});
