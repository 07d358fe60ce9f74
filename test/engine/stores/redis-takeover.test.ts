// Processes on one Redis that take over what others of them executed, or were to.

import { afterAll, beforeEach, describe, expect, test } from "vitest";
import type { Stores } from "../../../src/agent/core/stores.ts";
import { needing } from "../../support/needing.ts";
import { startRedis } from "../../support/redis.ts";
import {
  ADA,
  BOB,
  claimed,
  delta,
  done,
  keyOf,
  message,
  newRun,
  note,
  readAll,
  seqsOf,
  state,
  upTo,
} from "./fixture.ts";
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

  describe("of which one died", () => {
    test("finish its run: the next attempt continues where the last one stopped", async () => {
      const claim = await claimed(one, "t");
      const reading = readAll(two, keyOf(claim));
      await one.events.append(claim.lease, [note("one"), message("kept")]);
      await one.close();
      const [taken] = await recovered(two);
      expect(taken?.lease).toEqual({ ...claim.lease, epoch: 2 });
      expect(taken?.request).toEqual(claim.request);
      if (taken) await two.events.append(taken.lease, [note("two"), done()]);
      expect(seqsOf(await reading)).toEqual(upTo(4));
    });

    test("leave no run that it has started, however many there were", async () => {
      for (const n of upTo(70)) await claimed(one, `t${n}`, { owner: n % 2 ? ADA : BOB });
      await one.close();
      const three = await open();
      const found: string[] = [];
      while (found.length < 70) {
        const claims = await Promise.all([two.runs.claimAbandoned(100), three.runs.claimAbandoned(100)]);
        for (const { lease } of claims.flat()) found.push(`${lease.owner.user} ${lease.thread_id}`);
      }
      expect(new Set(found).size).toBe(70);
    });

    test("take what waits, too", async () => {
      const { lease } = await claimed(one, "t");
      const waiting = newRun("t");
      await one.runs.start(ADA, waiting, "queue");
      await one.events.append(lease, [done()]);
      await one.close();
      expect((await recovered(two)).map(({ run }) => run.id)).toEqual([waiting.id]);
    });

    test("know of its runs although what says so was lost", async () => {
      const claim = await claimed(one, "t");
      const notes = () => redis?.ask("KEYS", "sk:{due}:*").split("\n").filter(Boolean) ?? [];
      redis?.ask("DEL", ...notes());
      await one.runs.renew(claim.lease);
      while (notes().length === 0) await new Promise(setImmediate);
      await one.close();
      expect((await recovered(two)).map(({ run }) => run.id)).toEqual([claim.run.id]);
    });
  });

  test("know of a run that waits as soon as it is looked at, although its notice was lost", async () => {
    const waiting = newRun("t");
    await one.runs.enqueue(ADA, waiting, "reject");
    redis?.ask("DEL", ...(redis.ask("KEYS", "sk:{due}:*").split("\n") ?? []));
    expect(await two.runs.claimAbandoned(1)).toEqual([]);
    await one.runs.get(ADA, "t", waiting.id);
    expect((await recovered(two)).map(({ run }) => run.id)).toEqual([waiting.id]);
  });

  describe("that both want to know what became of a thread's run", () => {
    const reach = (by: Stores) => by.runs.claimNext(ADA, "t");

    test("leave it to the one that executes it", async () => {
      const busy = await open({ leaseMs: 10_000 });
      const { lease } = await claimed(busy, "t");
      expect(await Promise.all([reach(one), reach(two), reach(busy)])).toEqual(Array(3).fill(undefined));
      await busy.events.append(lease, [done()]);
    });

    test("take it over when that one died, one of them, before runs that wait", async () => {
      const { run, request, lease } = await claimed(one, "t");
      await one.events.append(lease, [note("one")]);
      const waiting = newRun("t");
      await two.runs.start(ADA, waiting, "queue");
      await one.close();
      const three = await open();
      const taken = [];
      while (taken.length === 0)
        taken.push(...(await Promise.all([reach(two), reach(three)])).filter((each) => each !== undefined));
      expect(taken).toMatchObject([{ run: { id: run.id, attempt: 2 }, lease: { epoch: 2 }, request }]);
      if (taken[0]) await two.events.append(taken[0].lease, [note("two"), done()]);
      expect(seqsOf(await readAll(three, lease))).toEqual([1, 2, 3]);
      expect(await reach(three)).toMatchObject({ run: { id: waiting.id, attempt: 1 } });
    });

    test("end it when too many have died of it, and take what waits", async () => {
      let time = 0;
      const options = { now: () => time, maxAttempts: 2 };
      const [slow, fast] = [await open(options), await open(options)];
      const { run } = await claimed(slow, "t");
      const waiting = newRun("t");
      await slow.runs.start(ADA, waiting, "queue");
      time += LEASE_MS + 1;
      expect(await reach(fast)).toMatchObject({ run: { id: run.id, attempt: 2 } });
      time += LEASE_MS + 1;
      const found = await Promise.all([reach(slow), reach(fast), reach(slow)]);
      expect(found.filter((each) => each !== undefined)).toMatchObject([
        { run: { id: waiting.id, attempt: 1 } },
      ]);
      expect(await slow.runs.get(ADA, "t", run.id)).toMatchObject({
        ...{ status: "error", attempt: 2, error: { code: "crashed_too_often" } },
      });
    });
  });

  describe("of which one is about to end", () => {
    test("hand its run over at once, and that is not held against the run", async () => {
      const claim = await claimed(one, "t");
      await one.events.append(claim.lease, [note("one")]);
      let by = one;
      let { lease } = claim;
      for (const n of upTo(5)) {
        await by.runs.release(lease);
        await expect(by.events.append(lease, [note("late")])).rejects.toMatchObject({ code: "lease_lost" });
        await expect(by.runs.renew(lease)).rejects.toMatchObject({ code: "lease_lost" });
        by = by === one ? two : one;
        const [taken] = await by.runs.claimAbandoned(100);
        expect(taken?.run).toMatchObject({ id: claim.run.id, attempt: n + 1 });
        lease = taken?.lease ?? lease;
      }
      await by.events.append(lease, [done()]);
      expect(seqsOf(await readAll(one, keyOf(claim)))).toEqual([1, 2]);
      await expect(by.runs.release(lease)).rejects.toMatchObject({ code: "lease_lost" });
    });
  });

  describe("of which one was asleep past its lease", () => {
    test("let it write nothing any more", async () => {
      const { lease } = await claimed(one, "t");
      await one.events.append(lease, [note("one")]);
      const [taken] = await recovered(two);
      const lost = { code: "lease_lost" };
      const late = [note("late"), message("late"), state("todos", ["late"]), done()];
      for (const event of late) {
        await expect(one.events.append(lease, [event])).rejects.toMatchObject(lost);
        // Nor can a process that got hold of its lease.
        await expect(two.events.append(lease, [event])).rejects.toMatchObject(lost);
      }
      await expect(one.runs.renew(lease)).rejects.toMatchObject(lost);
      await expect(one.runs.inbox(lease)).rejects.toMatchObject(lost);
      expect(await two.events.bounds(lease)).toEqual({ first: 1, last: 1 });
      expect(await two.threads.messages(ADA, "t")).toEqual([]);
      if (taken) await two.events.append(taken.lease, [done()]);
      expect(seqsOf(await readAll(one, lease))).toEqual([1, 2]);
    });

    test("let it fail with everything that it had on its way", async () => {
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

    test("let it continue until another one takes over", async () => {
      const { lease } = await claimed(one, "t");
      const until = performance.now() + LEASE_MS;
      while (performance.now() < until) await one.runs.inbox(lease);
      await one.runs.renew(lease);
      expect(await two.runs.claimAbandoned(100)).toEqual([]);
      await one.events.append(lease, [done()]);
    });
  });

  test("read on in a log of several attempts from any place", async () => {
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

    /** As many runs of a tenant that no process executes. */
    async function abandoned(tenant: string, count: number) {
      for (const n of upTo(count)) await claimed(slow, `${tenant}${n}`, { owner: { tenant, user: "ada" } });
      time += LEASE_MS;
    }
    async function taken(limit: number) {
      const claims = await slow.runs.claimAbandoned(limit);
      return claims.map(({ lease }) => lease.owner.tenant).sort();
    }

    test("take them tenant by tenant, as many as they ask for", async () => {
      await abandoned("big", 30);
      await abandoned("other", 2);
      await abandoned("small", 1);
      expect(await taken(3)).toEqual(["big", "other", "small"]);
      expect(await taken(2)).toEqual(["big", "other"]);
      expect(await taken(5)).toEqual(["big", "big", "big", "big", "big"]);
      expect(await taken(100)).toHaveLength(23);
      expect(await taken(100)).toEqual([]);
    });

    test("forget none that is started while they look", async () => {
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

    test("take one as soon as its lease is over, also right after another search", async () => {
      const { lease } = await claimed(slow, "t");
      time += 0.9 * LEASE_MS;
      await slow.runs.renew(lease);
      time += 0.2 * LEASE_MS;
      expect(await slow.runs.claimAbandoned(1)).toEqual([]);
      time += 0.8 * LEASE_MS;
      expect(await slow.runs.claimAbandoned(1)).toMatchObject([{ run: { attempt: 2 } }]);
    });

    test("serve a newcomer before the rest of those who wait", async () => {
      await abandoned("big", 10);
      expect(await taken(1)).toEqual(["big"]);
      await abandoned("small", 1);
      time++;
      const next = [await taken(1), await taken(1)].flat();
      expect(next.sort()).toEqual(["big", "small"]);
      expect(await taken(1)).toEqual(["big"]);
    });
  });
});
