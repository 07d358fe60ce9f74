// Several processes on one Redis, as stores that share nothing but it.

import { afterAll, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import type { Stores } from "../../../src/agent/core/stores.ts";
import { processesContract } from "../../contracts/processes.ts";
import { needing } from "../../support/needing.ts";
import { startRedis } from "../../support/redis.ts";
import { ADA, claimed, delta, done, keyOf, newRun, note, readAll, seqsOf, upTo } from "./fixture.ts";
import { processesOn } from "./redis-processes.ts";

const redis = await startRedis();
afterAll(() => redis?.close());

/** Short, so that a lease is over while a test looks. */
const LEASE_MS = 300;

needing(redis, "redis-server").describe("processes on one Redis", () =>
  processesContract(processesOn(redis, { leaseMs: LEASE_MS })),
);

needing(redis, "redis-server").describe("two processes", () => {
  const open = processesOn(redis, { leaseMs: LEASE_MS });
  let one: Stores;
  let two: Stores;
  beforeEach(async () => {
    [one, two] = [await open(), await open()];
  });

  test("never refuse a request because of a thread's earlier state", async () => {
    const { lease, run } = await claimed(one, "t", { idempotency_key: "k" });
    await two.threads.get(ADA, "t");
    const known = await two.runs.start(ADA, newRun("t", { idempotency_key: "k" }), "reject");
    expect(known).toMatchObject({ outcome: "known", run: { id: run.id } });
    await two.threads.get(ADA, "t");
    await one.events.append(lease, [done()]);
    const next = await claimed(two, "t");
    await two.events.append(next.lease, [done()]);
    await two.threads.get(ADA, "t");
    await one.threads.delete(ADA, "t");
    await two.threads.create(ADA, { id: "t", metadata: {} });
  });

  test("show their own viewers the output, even while nothing arrives from Redis", async () => {
    const claim = await claimed(one, "t");
    await one.events.append(claim.lease, [note("one")]);
    const reader = one.events.read(keyOf(claim), 1, new AbortController().signal);
    const next = reader.next();
    while (redis?.ask("PUBSUB", "CHANNELS") === "") await new Promise(setImmediate);
    redis?.ask("CLIENT", "KILL", "TYPE", "pubsub");
    await one.events.append(claim.lease, [done()]);
    await redis?.pause();
    try {
      expect((await next).value).toMatchObject([{ seq: 2, event: "done" }]);
    } finally {
      await redis?.resume();
    }
  });

  test("miss no output after their connection was broken", async () => {
    // Without this, a check every few seconds would find the missed output too.
    vi.useFakeTimers({ toFake: ["setInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const other = await open();
    vi.useRealTimers();
    const claim = await claimed(one, "t");
    const reading = readAll(other, keyOf(claim));
    while (redis?.ask("PUBSUB", "CHANNELS") === "") await new Promise(setImmediate);
    redis?.ask("CLIENT", "KILL", "TYPE", "pubsub");
    await one.events.append(claim.lease, [note("one"), done()]);
    expect(seqsOf(await reading)).toEqual([1, 2]);
  });

  test("show a run to a thousand viewers over one connection, even if one of them misbehaves", async () => {
    const claim = await claimed(one, "t");
    const stalled = two.events.read(keyOf(claim), 0, new AbortController().signal);
    const first = stalled.next();
    const reading = upTo(1000).map(() => readAll(two, keyOf(claim)));
    await one.events.append(claim.lease, [delta("first")]);
    await first;
    for (const n of upTo(20))
      await one.events.append(
        claim.lease,
        upTo(20).map((m) => delta(`${n}.${m}`)),
      );
    const channels = () => redis?.ask("PUBSUB", "CHANNELS").split("\n").filter(Boolean) ?? [];
    const subscribers = () => redis?.ask("PUBSUB", "NUMSUB", ...channels()).split("\n") ?? [];
    await expect.poll(() => subscribers().slice(1)).toEqual(["1"]);
    await one.events.append(claim.lease, [done()]);
    for (const entries of await Promise.all(reading)) expect(seqsOf(entries)).toEqual(upTo(402));
    const rest: number[] = [];
    for await (const batch of stalled) rest.push(...seqsOf(batch));
    expect(rest.at(-1)).toBe(402);
    while (channels().length > 0) await new Promise(setImmediate);
  });
});
