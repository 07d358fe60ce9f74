// Several processes on one Redis, as stores that share nothing but it.

import { afterAll, beforeEach, expect, test } from "vitest";
import type { UserEvent } from "../../../src/agent/core/bus.ts";
import { userMessage } from "../../../src/agent/core/message.ts";
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
  patch,
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

  test("that start runs on the same threads start one on each", async () => {
    const starts = upTo(40).map((n) =>
      (n % 2 ? one : two).runs.start(ADA, newRun(`t${n % 4}`), n % 3 ? "reject" : "queue"),
    );
    const results = await Promise.allSettled(starts);
    const claims = results.filter((each) => each.status === "fulfilled" && each.value.outcome === "claimed");
    expect(claims).toHaveLength(4);
  });

  test("start one run for an idempotency key", async () => {
    const again = (by: Stores) => by.runs.start(ADA, newRun("t", { idempotency_key: "k" }), "queue");
    const results = await Promise.all(upTo(20).map((n) => again(n % 2 ? one : two)));
    const ids = results.map((each) => (each.outcome === "claimed" ? each.claim.run.id : each.run.id));
    expect(results.filter(({ outcome }) => outcome === "claimed")).toHaveLength(1);
    expect(new Set(ids).size).toBe(1);
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

  test("show each other a run's output while it is written", async () => {
    const claim = await claimed(one, "t");
    const reading = readAll(two, keyOf(claim));
    for (const n of upTo(30)) await one.events.append(claim.lease, [n % 5 ? delta(`${n}`) : message(`${n}`)]);
    await one.events.append(claim.lease, [state("todos", ["a"]), patch("files", { a: 1 }), done()]);
    expect(seqsOf(await reading)).toEqual(upTo(33));
    expect(await two.threads.messages(ADA, "t")).toHaveLength(6);
    expect(await two.threads.state(ADA, "t")).toEqual({ todos: ["a"], files: { a: 1 } });
    expect(await two.threads.get(ADA, "t")).toEqual(await one.threads.get(ADA, "t"));
    expect((await two.threads.list(ADA, { limit: 5 })).items).toHaveLength(1);
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
    const claim = await claimed(one, "t");
    const reading = readAll(two, keyOf(claim));
    while (redis?.ask("PUBSUB", "CHANNELS") === "") await new Promise(setImmediate);
    redis?.ask("CLIENT", "KILL", "TYPE", "pubsub");
    await one.events.append(claim.lease, [note("one"), done()]);
    expect(seqsOf(await reading)).toEqual([1, 2]);
  });

  test("stop and steer each other's runs", async () => {
    const { lease } = await claimed(one, "t");
    const left = userMessage("left");
    expect(await two.runs.steer(ADA, "t", lease.run_id, left)).toBe(true);
    expect(await two.runs.requestStop(ADA, "t", lease.run_id, "interrupt")).toMatchObject({
      status: "running",
    });
    expect(await one.runs.inbox(lease)).toEqual([left]);
    expect(await one.runs.renew(lease)).toEqual({ stop: "interrupt" });
  });

  test("lose no message sent at the end of a run", async () => {
    for (const n of upTo(20)) {
      const { lease } = await claimed(one, `t${n}`);
      const sent = upTo(4).map((m) => userMessage(`${m}`));
      const steered = sent.map((left) => two.runs.steer(ADA, lease.thread_id, lease.run_id, left));
      const ended = one.events.append(lease, [note("x"), done()]);
      const taken = (await Promise.all([...steered, ended])).slice(0, 4);
      const messages = await two.threads.messages(ADA, lease.thread_id);
      expect(messages).toEqual(sent.filter((_, index) => taken[index]));
    }
  });

  test("receive each other's events for a user", async () => {
    const { signal } = new AbortController();
    const events = two.bus.subscribe(ADA, signal);
    const others = two.bus.subscribe(BOB, signal);
    const told: UserEvent = {
      event: "run_started",
      data: { thread_id: "t", run_id: "r", agent: "é\ud800" },
    };
    const heard = events.next();
    // Until the subscription is there, no one hears.
    const telling = setInterval(() => one.bus.publish(ADA, told), 5);
    expect(JSON.stringify((await heard).value)).toBe(JSON.stringify(told));
    clearInterval(telling);
    one.bus.publish(BOB, told);
    expect((await others.next()).value).toBeDefined();
  });

  test("write under a lease that one handed to the other", async () => {
    const { lease } = await claimed(one, "t");
    await one.events.append(lease, [note("one"), note("two")]);
    await two.events.append(lease, [note("three")]);
    await two.events.append(lease, [message("four"), done()]);
    expect(seqsOf(await readAll(one, lease))).toEqual(upTo(5));
    expect(await one.threads.messages(ADA, "t")).toHaveLength(1);
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
    expect(
      redis
        ?.ask("PUBSUB", "NUMSUB", ...channels())
        .split("\n")
        .slice(1),
    ).toEqual(["1"]);
    await one.events.append(claim.lease, [done()]);
    for (const entries of await Promise.all(reading)) expect(seqsOf(entries)).toEqual(upTo(402));
    const rest: number[] = [];
    for await (const batch of stalled) rest.push(...seqsOf(batch));
    expect(rest.at(-1)).toBe(402);
    while (channels().length > 0) await new Promise(setImmediate);
  });

  test("drop expired threads, in lists too, and keep those that are used", async () => {
    // Long enough for a busy machine to read the thread in time.
    const short = await open({ threadTtlMs: 4_000, interruptedTtlMs: 120_000, leaseMs: 60_000 });
    for (const id of ["idle", "read"]) await short.threads.create(ADA, { id, metadata: {} });
    await short.events.append((await claimed(short, "asks")).lease, [message("may I?"), done("interrupted")]);
    const { lease } = await claimed(short, "runs");
    while (await short.threads.get(ADA, "read")) {
      if (!(await short.threads.list(ADA, { limit: 9 })).items.some(({ id }) => id === "idle")) break;
      await short.threads.messages(ADA, "read");
    }
    expect(await short.threads.get(ADA, "idle")).toBeUndefined();
    const left = (await short.threads.list(ADA, { limit: 9 })).items.map(({ id }) => id);
    expect(left.sort()).toEqual(["asks", "read", "runs"]);
    expect(await short.threads.messages(ADA, "asks")).toHaveLength(1);
    await short.events.append(lease, [message("x"), done()]);
    expect(await short.threads.messages(ADA, "runs")).toHaveLength(1);
  });
});
