// What version 0.1.0 wrote to Redis of threads, runs and deferred calls is there after an upgrade, and can be changed.
// redis-runs-0.1.0.json holds the commands that write the same.

import { readFileSync } from "node:fs";
import { afterAll, expect } from "vitest";
import type { AllStores } from "../../src/stores/all-stores.ts";
import { createRedisStores } from "../../src/stores/redis/index.ts";
import { needing } from "../support/needing.ts";
import { startRedis } from "../support/redis.ts";
import { ADA, done, message, newRun, readAll } from "./fixture.ts";

const START = Date.parse("2026-11-21T10:00:00.000Z");
const redis = await startRedis();
afterAll(() => redis?.close());

const ids = (messages: readonly { id: string }[]) => messages.map(({ id }) => id);

needing(redis, "redis-server").test(
  "a Redis of version 0.1.0 keeps its threads, runs and calls",
  async () => {
    const file = readFileSync(new URL("redis-runs-0.1.0.json", import.meta.url), "utf8");
    for (const command of JSON.parse(file) as string[][]) redis?.ask(...command);
    let time = START + 1;
    const stores = await createRedisStores({ url: redis?.url ?? "", now: () => time });
    const { runs, threads, events, deferredCalls } = stores;

    const { items } = await threads.list(ADA, { limit: 10 });
    expect(items.map(({ id, status }) => [id, status]).sort()).toEqual([
      ["busy", "busy"],
      ["idle", "idle"],
      ["queued", "busy"],
      ["waiting", "interrupted"],
    ]);
    expect(await threads.get(ADA, "idle")).toMatchObject({
      title: "Old",
      metadata: { a: 1 },
      message_count: 2,
    });
    expect(ids(await threads.messages(ADA, "idle"))).toEqual(["m0", "m1"]);
    expect(await threads.state(ADA, "idle")).toEqual({ plan: ["y"], map: { a: 1, b: 2 } });
    expect(await runs.known(ADA, "idle", "key")).toMatchObject({ id: "run_1", status: "success" });
    const log = await readAll(stores, { owner: ADA, thread_id: "idle", run_id: "run_1" });
    expect(log.map(({ seq, event }) => [seq, event])).toEqual([
      [1, "on_message"],
      [2, "on_state"],
      [3, "on_state"],
      [4, "done"],
    ]);

    // The lease, the stop that was asked for and the inbox are still the old holder's.
    const old = { owner: ADA, thread_id: "busy", run_id: "run_3", epoch: 1 };
    expect(await runs.renew(old)).toEqual({ stop: "interrupt" });
    expect(ids(await runs.inbox(old))).toEqual(["m4"]);
    await events.append(old, [message("still writing")]);
    await expect(runs.start(ADA, newRun("busy"), "reject")).rejects.toMatchObject({ code: "thread_busy" });

    // Once it is over, the run and those that wait are found, in their order.
    time += 2 * runs.leaseMs;
    const taken = await runs.claimAbandoned(10);
    expect(taken.map(({ run }) => [run.id, run.attempt]).sort()).toEqual([
      ["run_3", 2],
      ["run_6", 1],
    ]);
    await expect(events.append(old, [done()])).rejects.toMatchObject({ code: "lease_lost" });
    for (const { lease } of taken) await events.append(lease, [done()]);
    expect(ids(await threads.messages(ADA, "busy"))).toEqual(["m3", expect.any(String), "m4"]);
    for (const next of ["run_5", "run_4"]) {
      const claim = await runs.claimNext(ADA, "busy");
      expect(claim).toMatchObject({ run: { id: next }, lease: { epoch: 1 } });
      if (claim) await events.append(claim.lease, [done()]);
    }
    expect(await runs.begun(ADA, "busy", "run_3")).toMatchObject({ id: "run_5" });

    const delivered = await deferredCalls.deliver("1".repeat(64), { result: 42 });
    expect(delivered).toMatchObject({ call_id: "c1", state: "delivered", reply: { result: 42 } });
    expect(await deferredCalls.get({ owner: ADA, thread_id: "waiting", call_id: "c2" })).toMatchObject({
      state: "sent",
    });
    expect(await deferredCalls.due(10)).toEqual([{ owner: ADA, thread_id: "waiting", call_ids: ["c1"] }]);

    const started = await runs.start(ADA, newRun("idle", { rewind_to: "m1" }), "reject");
    expect(started).toMatchObject({ outcome: "claimed" });
    expect(ids(await threads.messages(ADA, "idle"))).toEqual(["m0"]);
    await stores.close();
  },
);

needing(redis, "redis-server").test(
  "users whose first threads an old process makes during the upgrade are known to the last process that starts",
  async () => {
    redis?.ask("FLUSHALL");
    const open = () => createRedisStores({ url: redis?.url ?? "" });
    const known = async (stores: AllStores) =>
      (await stores.owners.list({ limit: 10 })).map(({ user }) => user);
    const first = await open();
    await expect.poll(() => redis?.ask("EXISTS", "sk:{owners}:found")).toBe("1");
    await first.threads.create(ADA, { id: "t", metadata: {} });
    // The old process knows no list of owners.
    redis?.ask("DEL", "sk:{owners}");
    const last = await open();
    await expect.poll(() => known(last)).toEqual([ADA.user]);
    await Promise.all([first.close(), last.close()]);
  },
);
