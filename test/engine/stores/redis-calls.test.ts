// What processes on one Redis ask of each other, and runs that wait for any of them.

import { afterAll, beforeEach, expect, test } from "vitest";
import type { ControlMessage, Stores } from "../../../src/agent/core/stores.ts";
import { needing } from "../../support/needing.ts";
import { startRedis } from "../../support/redis.ts";
import { ADA, claimed, done, newRun, upTo } from "./fixture.ts";
import { processesOn } from "./redis-processes.ts";

const redis = await startRedis();
afterAll(() => redis?.close());

const WAITING: ControlMessage = { call: "waiting" };

needing(redis, "redis-server").describe("two processes", () => {
  const open = processesOn(redis);
  let one: Stores;
  let two: Stores;
  beforeEach(async () => {
    [one, two] = [await open(), await open()];
  });

  const channels = () => redis?.ask("PUBSUB", "CHANNELS").split("\n").filter(Boolean) ?? [];

  /** What they hear from now on; once this resolves. */
  async function hearing(...by: Stores[]): Promise<ControlMessage[][]> {
    const heard = by.map((each) => {
      const calls: ControlMessage[] = [];
      each.runs.subscribe((call) => calls.push(call));
      return calls;
    });
    await expect.poll(() => redis?.ask("PUBSUB", "NUMSUB", ...channels())).toMatch(`\n${by.length}`);
    return heard;
  }

  test("learn immediately, in any process, that a run must stop, and a cancellation takes precedence over an interrupt", async () => {
    const [mine, theirs] = await hearing(one, two);
    const { run } = await claimed(one, "t");
    for (const mode of ["interrupt", "cancel", "interrupt"] as const)
      await two.runs.requestStop(ADA, "t", run.id, mode);
    const stop = (mode: string) => ({ call: "stop", run_id: run.id, mode });
    const expected = [stop("interrupt"), stop("cancel"), stop("cancel")];
    await expect.poll(() => mine).toEqual(expected);
    await expect.poll(() => theirs).toEqual(expected);
  });

  test("learn of runs that no process executes: handed over, queued, or abandoned by a process that ended", async () => {
    const [mine, theirs] = await hearing(one, two);
    const heard = async (count: number) => {
      await expect.poll(() => theirs).toEqual(Array(count).fill(WAITING));
      await expect.poll(() => mine).toEqual(theirs);
    };
    const { lease } = await claimed(one, "t");
    await one.runs.release(lease);
    await heard(1);
    await one.runs.enqueue(ADA, newRun("u"), "reject");
    await heard(2);
    const claims = await two.runs.claimAbandoned(2);
    expect(claims.map((claim) => claim.lease.thread_id).sort()).toEqual(["t", "u"]);
    for (const claim of claims) await one.runs.start(ADA, newRun(claim.lease.thread_id), "queue");
    for (const claim of claims) await two.events.append(claim.lease, [done()]);
    await heard(4);
  });

  test("look for runs if they may have missed the call", async () => {
    const [heard] = await hearing(one);
    redis?.ask("CLIENT", "KILL", "TYPE", "pubsub");
    await expect.poll(() => heard).toEqual([WAITING]);
  });

  test("ignore messages that none of them has sent", async () => {
    const [heard] = await hearing(one);
    const [calls = ""] = channels();
    const events = one.bus.subscribe(ADA, new AbortController().signal);
    const next = events.next();
    await expect.poll(channels).toHaveLength(2);
    const stop = JSON.stringify({ call: "stop", run_id: "r", mode: "cancel" });
    const name = "0123456789ABCDEFGHIJKL";
    const nonsense = ["", "x", `${name}{`, `${name}null`, `${name}{"call":"stop"}`, stop.repeat(2)];
    for (const channel of channels()) for (const text of nonsense) redis?.ask("PUBLISH", channel, text);
    const stops = () => {
      // Sent again until it is heard: a subscription that was lost meanwhile is made again, and misses what came between.
      redis?.ask("PUBLISH", calls, name + stop);
      return new Set(heard?.filter(({ call }) => call === "stop").map((call) => JSON.stringify(call)));
    };
    await expect.poll(stops).toEqual(new Set([stop]));
    const told = { event: "run_started", data: { thread_id: "t", run_id: "r", agent: "a" } } as const;
    two.bus.publish(ADA, told);
    expect((await next).value).toEqual(told);
  });

  test("do not count the threads of a tenant whose runs have ended", async () => {
    const small = await open({ tenantQueueLength: 3 });
    for (const n of upTo(10)) await small.events.append((await claimed(small, `t${n}`)).lease, [done()]);
    await expect
      .poll(() => small.runs.enqueue(ADA, newRun("more"), "reject").catch(({ code }) => ({ outcome: code })))
      .toMatchObject({ outcome: "queued" });
  });

  test("share one persistent name, which is different in another database", async () => {
    const name = one.shared?.deployment;
    expect(name).toMatch(/^\w{22}$/);
    expect(two.shared?.deployment).toBe(name);
    expect((await open({ url: `${redis?.url}/1` })).shared?.deployment).not.toBe(name);
    redis?.ask("FLUSHALL");
    redis?.ask("CLIENT", "KILL", "TYPE", "normal");
    await expect.poll(() => redis?.ask("GET", "sk:{deployment}")).toBe(name);
  });
});
