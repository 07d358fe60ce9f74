// What processes that share nothing but one store promise each other.

import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import type { UserEvent } from "../../src/agent/core/bus.ts";
import { userMessage } from "../../src/agent/core/message.ts";
import type { Stores } from "../../src/agent/core/stores.ts";
import {
  ADA,
  BOB,
  claimed,
  delta,
  done,
  eventsOf,
  keyOf,
  message,
  newRun,
  note,
  patch,
  readAll,
  readSome,
  seqsOf,
  state,
  upTo,
} from "../engine/stores/fixture.ts";

/**
 * `open` starts one more process on the store of a test; it is closed after the test. Leases must be short, unless the test
 * wants others.
 */
export function processesContract(open: (more?: { leaseMs: number }) => Promise<Stores>): void {
  let one: Stores;
  let two: Stores;
  beforeEach(async () => {
    [one, two] = await Promise.all([open(), open()]);
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

  test("receive each other's events for a user, however long they are", async () => {
    const { signal } = new AbortController();
    const [events, others] = [two.bus.subscribe(ADA, signal), two.bus.subscribe(BOB, signal)];
    const started = (agent: string): UserEvent => ({
      event: "run_started",
      data: { thread_id: "t", run_id: "r", agent },
    });
    const [long, short] = [started("é\ud800".repeat(20_000)), started("a")];
    const heard = Promise.all([events.next(), others.next()]);
    // Until the subscriptions are there, no one hears.
    const telling = setInterval(() => {
      one.bus.publish(ADA, long);
      one.bus.publish(BOB, short);
    }, 5);
    const [first, second] = await heard.finally(() => clearInterval(telling));
    expect(JSON.stringify(first.value)).toBe(JSON.stringify(long));
    expect(second.value).toEqual(short);
  });

  test("stop each other's runs, and lose no message that is sent at the end of a run", async () => {
    for (const n of upTo(5)) {
      const { lease } = await claimed(one, `t${n}`);
      const stopped = await two.runs.requestStop(ADA, lease.thread_id, lease.run_id, "interrupt");
      expect(stopped).toMatchObject({ status: "running" });
      expect(await one.runs.renew(lease)).toEqual({ stop: "interrupt" });
      const sent = upTo(8).map((each) => userMessage(`${each}`));
      const steered = sent.map((left) => two.runs.steer(ADA, lease.thread_id, lease.run_id, left));
      const ended = one.events.append(lease, [note("x"), done()]);
      const taken = await Promise.all(steered);
      await ended;
      const found = (await two.threads.messages(ADA, lease.thread_id)).map(({ id }) => id);
      expect(found.sort()).toEqual(sent.flatMap(({ id }, index) => (taken[index] ? id : [])).sort());
    }
  });

  test("end each other's waiting runs, and readers learn it without looking for it", async () => {
    // Readers would find it when they have heard nothing for a while.
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const reader = await open();
    const { lease } = await claimed(one, "t");
    const waiting = newRun("t");
    await one.runs.start(ADA, waiting, "queue");
    const reading = readAll(reader, { ...lease, run_id: waiting.id });
    for (const n of upTo(5)) {
      const following = readSome(reader, lease, 1, n - 1);
      await one.events.append(lease, [note(`${n}`)]);
      await following;
    }
    await one.runs.requestStop(ADA, "t", waiting.id, "cancel");
    expect(eventsOf(await reading).at(-1)).toMatchObject({ event: "done", data: { status: "cancelled" } });
  });

  test("write under a lease that one handed to the other", async () => {
    const { lease } = await claimed(one, "t");
    await one.events.append(lease, [note("one"), note("two")]);
    await two.events.append(lease, [note("three")]);
    await two.events.append(lease, [message("four"), done()]);
    expect(seqsOf(await readAll(one, lease))).toEqual(upTo(5));
    expect(await one.threads.messages(ADA, "t")).toHaveLength(1);
  });

  test("leave no run of a dead process behind, and take each once", async () => {
    for (const n of upTo(70)) await claimed(one, `t${n}`, { owner: n % 2 ? ADA : BOB });
    await one.close();
    // What one of them takes is its own for longer than the other one looks.
    const [three, four] = [await open({ leaseMs: 60_000 }), await open({ leaseMs: 60_000 })];
    const found: string[] = [];
    while (found.length < 70) {
      const claims = await Promise.all([three.runs.claimAbandoned(100), four.runs.claimAbandoned(100)]);
      for (const { lease } of claims.flat()) {
        found.push(`${lease.owner.user} ${lease.thread_id}`);
        await three.events.append(lease, [done()]);
      }
    }
    expect(new Set(found).size).toBe(70);
  });
}
