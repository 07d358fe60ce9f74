// Work that is due: each document is worked on once, by one of all processes, and a failure loses nothing.

import { expect, onTestFinished, test, vi } from "vitest";
import { type ClaimedDocument, finish } from "../../src/agent/core/document-claims.ts";
import { type Documents, newVersion } from "../../src/agent/core/documents.ts";
import { createDueWorker, type DueWork } from "../../src/engine/due-worker.ts";
import { createMemoryStores } from "../../src/engine/stores/memory/index.ts";
import type { Logger } from "../../src/lib/logger.ts";

const KIND = "chores";
const until = (isTrue: () => boolean) => vi.waitUntil(isTrue, { timeout: 60_000 });

/** Two workers on one store, as two processes have them. They are closed when the test has finished. */
function twoWorkers(documents: Documents, work: DueWork["work"], rest: Partial<DueWork> = {}) {
  const warned = vi.fn<Logger["warn"]>();
  const logger = { debug: warned, info: warned, warn: warned, error: warned } as unknown as Logger;
  const due = { kind: KIND, work, leaseMs: 60_000, everyMs: 20, atOnce: 4, ...rest };
  const workers = [1, 2].map(() => createDueWorker(documents, due, logger));
  for (const worker of workers) worker.open();
  onTestFinished(async () => void (await Promise.all(workers.map((each) => each.close()))));
  return { workers, warned };
}

async function add(documents: Documents, tenant: string, count: number): Promise<void> {
  const writes = Array.from({ length: count }, (_, n) => ({
    ...{ key: `${n}`, seen: undefined, body: `${tenant}${n}`, due: 1 },
  }));
  await documents.write({ kind: KIND, tenant }, writes, { version: newVersion() });
}

test("each due document is processed once, however many workers there are", async () => {
  const { documents } = createMemoryStores();
  await add(documents, "acme", 30);
  const done: string[] = [];
  twoWorkers(documents, async (claimed) => {
    done.push(claimed.body);
    await finish(documents, claimed, { body: undefined });
  });
  await expect.poll(() => documents.list({ kind: KIND, tenant: "acme" })).toEqual([]);
  expect(done).toHaveLength(30);
  expect(new Set(done).size).toBe(30);
});

test("a tenant with many due documents lets the next tenant take its turn", async () => {
  // Turns are taken by the store's clock, which moves on here with each look.
  let time = Date.now();
  const { documents } = createMemoryStores({ now: () => time++ });
  await add(documents, "many", 40);
  await add(documents, "one", 1);
  const order: string[] = [];
  twoWorkers(
    documents,
    async (claimed) => {
      order.push(claimed.body);
      await finish(documents, claimed, { body: undefined });
    },
    { atOnce: 1 },
  );
  await until(() => order.length === 41);
  expect(order.indexOf("one0")).toBeLessThan(6);
});

test("a free place takes the next document immediately, not with the next poll", async () => {
  const { documents } = createMemoryStores();
  await add(documents, "acme", 30);
  let done = 0;
  const work = async (claimed: ClaimedDocument) => {
    await finish(documents, claimed, { body: undefined });
    done++;
  };
  twoWorkers(documents, work, { atOnce: 2, everyMs: 3_600_000 });
  await until(() => done === 30);
});

test("failed work is logged with its cause, and repeated after its lease", async () => {
  const { documents } = createMemoryStores();
  await add(documents, "acme", 1);
  let attempts = 0;
  const work = async (claimed: ClaimedDocument) => {
    if (++attempts === 1) throw new Error("The disk is full.");
    await finish(documents, claimed, { body: undefined });
  };
  const { warned } = twoWorkers(documents, work, { leaseMs: 50 });
  await until(() => attempts >= 2);
  expect(warned).toHaveBeenCalledWith(
    expect.objectContaining({ kind: KIND, tenant: "acme", err: new Error("The disk is full.") }),
    "could not process a due document",
  );
});

test("a failed store is called again, and logged once", async () => {
  const { documents } = createMemoryStores();
  await add(documents, "acme", 1);
  let picks = 0;
  const failing: Documents = {
    ...documents,
    async pick(kind, options) {
      if (++picks < 6) throw new Error("The store is away.");
      return documents.pick(kind, options);
    },
  };
  let isDone = false;
  const { warned } = twoWorkers(failing, async (claimed) => {
    isDone = await finish(documents, claimed, { body: undefined });
  });
  await until(() => isDone);
  // Each of the two workers says so once.
  expect(warned.mock.calls.filter(([, text]) => text === "could not check for due documents").length).toBe(2);
});

test("a closing worker aborts its work and waits for it", async () => {
  const { documents } = createMemoryStores();
  await add(documents, "acme", 1);
  const begun = Promise.withResolvers<void>();
  let hasEnded = false;
  const { workers } = twoWorkers(documents, async (_, signal) => {
    begun.resolve();
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    hasEnded = true;
  });
  await begun.promise;
  await Promise.all(workers.map((each) => each.close()));
  expect(hasEnded).toBe(true);
});
