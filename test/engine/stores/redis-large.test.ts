// Threads that are larger than one call of a function, or of Lua, can take.

import { afterAll, expect, test } from "vitest";
import { userMessage } from "../../../src/agent/core/message.ts";
import { needing } from "../../support/needing.ts";
import { startRedis } from "../../support/redis.ts";
import { ADA, claimed, done, message, newRun, upTo } from "./fixture.ts";
import { processesOn } from "./redis-processes.ts";

const redis = await startRedis();
afterAll(() => redis?.close());

const COUNT = 50_000;
const SLOTS = 5_000;

needing(redis, "redis-server").describe("a thread of many megabytes", () => {
  const open = processesOn(redis, { deadlineMs: 120_000 });

  test("begins with all of it, and can be rewound to any message", async () => {
    const { threads, runs, events } = await open();
    const messages = upTo(COUNT).map((n) => userMessage(`${n}`.padEnd(100)));
    const state = Object.fromEntries(upTo(SLOTS).map((n) => [`slot ${n}`, n]));
    const created = await threads.create(ADA, { id: "t", metadata: {}, messages, state });
    expect(created.message_count).toBe(COUNT);
    const found = await threads.messages(ADA, "t");
    expect(JSON.stringify(found) === JSON.stringify(messages)).toBe(true);
    expect(await threads.state(ADA, "t")).toEqual(state);

    const [kept, first] = messages.slice(COUNT / 10);
    const run = newRun("t", { rewind_to: first?.id ?? "" });
    const started = await runs.start(ADA, run, "reject");
    expect(started.outcome).toBe("claimed");
    expect(await threads.messages(ADA, "t", { after: kept?.id ?? "" })).toEqual([]);
    expect((await threads.get(ADA, "t"))?.message_count).toBe(COUNT / 10 + 1);
    if (started.outcome !== "claimed") return;
    const next = message("next");
    await events.append(started.claim.lease, [next, done()]);
    expect(await threads.messages(ADA, "t", { after: kept?.id ?? "" })).toEqual([next.data.message]);
  });

  test("deletes any number of values of its state", async () => {
    const stores = await open();
    const names = upTo(SLOTS).map((n) => `slot ${n}`);
    const state = Object.fromEntries(names.map((name) => [name, name]));
    await stores.threads.create(ADA, { id: "t", metadata: {}, state });
    const forget = names.slice(1);
    expect(await stores.threads.update(ADA, "t", { forget })).toBeDefined();
    expect(await stores.threads.state(ADA, "t")).toEqual({ "slot 1": "slot 1" });
    await claimed(stores, "t");
    await expect(stores.threads.update(ADA, "t", { forget })).rejects.toMatchObject({ code: "thread_busy" });
  });
});
