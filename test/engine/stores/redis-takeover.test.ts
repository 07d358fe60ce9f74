// Processes on one Redis that take over what others of them executed, or were to.

import { afterAll, beforeEach, describe, expect, test } from "vitest";
import type { Stores } from "../../../src/agent/core/stores.ts";
import { needing } from "../../support/needing.ts";
import { startRedis } from "../../support/redis.ts";
import { ADA, claimed, delta, done, keyOf, message, newRun, note, readAll, seqsOf, upTo } from "./fixture.ts";
import { processesOn } from "./redis-processes.ts";

const redis = await startRedis();
afterAll(() => redis?.close());

/** Short, so that a lease is over while a test looks. */
const LEASE_MS = 300;

needing(redis, "redis-server").describe("two processes", () => {
  const open = processesOn(redis, { leaseMs: LEASE_MS });
  let one: Stores;
  let two: Stores;
  beforeEach(async () => {
    [one, two] = [await open(), await open()];
  });

  /** Looks for abandoned runs until there are `count`, or more. */
  async function recovered(by: Stores, count = 1, limit = 100) {
    const claims = await by.runs.claimAbandoned(limit);
    while (claims.length < count) claims.push(...(await by.runs.claimAbandoned(limit)));
    return claims;
  }

  test("find the runs of a dead process even though their index entry was lost", async () => {
    const claim = await claimed(one, "t");
    const notes = () => redis?.ask("KEYS", "sk:{due}:*").split("\n").filter(Boolean) ?? [];
    redis?.ask("DEL", ...notes());
    await one.runs.renew(claim.lease);
    while (notes().length === 0) await new Promise(setImmediate);
    await one.close();
    expect((await recovered(two)).map(({ run }) => run.id)).toEqual([claim.run.id]);
  });

  test("find a waiting run as soon as they look, even though its notification was lost", async () => {
    const waiting = newRun("t");
    await one.runs.enqueue(ADA, waiting, "reject");
    redis?.ask("DEL", ...(redis.ask("KEYS", "sk:{due}:*").split("\n") ?? []));
    expect(await two.runs.claimAbandoned(1)).toEqual([]);
    await one.runs.get(ADA, "t", waiting.id);
    expect((await recovered(two)).map(({ run }) => run.id)).toEqual([waiting.id]);
  });

  describe("one of which was suspended for longer than its lease", () => {
    test("let all of its pending writes fail", async () => {
      const { lease } = await claimed(one, "t");
      await one.events.append(lease, [note("one")]);
      const [taken] = await recovered(two);
      const results = await Promise.allSettled([
        ...upTo(100).map((n) => one.events.append(lease, [delta(`${n}`)])),
        one.events.append(lease, [message("late"), done()]),
      ]);
      expect(new Set(results.map(({ status }) => status))).toEqual(new Set(["rejected"]));
      if (taken) await two.events.append(taken.lease, [done()]);
      expect(await readAll(two, lease)).toHaveLength(2);
    });
  });

  test("continue reading a log of several attempts from any position", async () => {
    const claim = await claimed(one, "t");
    let { lease } = claim;
    for (const attempt of upTo(3)) {
      const said = upTo(100).map((n) => (n % 7 ? delta(`${n}`) : note(`${n}`)));
      await one.events.append(lease, said);
      if (attempt < 3) lease = (await recovered(two))[0]?.lease ?? lease;
    }
    await two.events.append(lease, [done()]);
    for (const after of [0, 1, 50, 99, 100, 101, 150, 199, 200, 250, 300, 301])
      expect(seqsOf(await readAll(one, keyOf(claim), after))).toEqual(upTo(301, after + 1));
  });

  describe("whose runs wait for them", () => {
    let time = 0;
    let slow: Stores;
    beforeEach(async () => {
      slow = await open({ now: () => time });
    });

    test("miss no run that is started while they look", async () => {
      const fast = await open({ now: () => time });
      for (const n of upTo(200)) {
        const { lease } = await claimed(slow, "t");
        await slow.events.append(lease, [done()]);
        time += LEASE_MS;
        const looking = fast.runs.claimAbandoned(100);
        for (let turns = n % 12; turns > 0; turns--) await new Promise(setImmediate);
        const { run, lease: next } = await claimed(slow, "t");
        expect(await looking).toEqual([]);
        time += LEASE_MS;
        const taken = await fast.runs.claimAbandoned(100);
        expect(taken.map((claim) => claim.run.id)).toEqual([run.id]);
        await fast.events.append({ ...next, epoch: 2 }, [done()]);
      }
    });

    test("take a run as soon as its lease has expired, even right after another search", async () => {
      const { lease } = await claimed(slow, "t");
      time += 0.9 * LEASE_MS;
      await slow.runs.renew(lease);
      time += 0.2 * LEASE_MS;
      expect(await slow.runs.claimAbandoned(1)).toEqual([]);
      time += 0.8 * LEASE_MS;
      expect(await slow.runs.claimAbandoned(1)).toMatchObject([{ run: { attempt: 2 } }]);
    });
  });
});
