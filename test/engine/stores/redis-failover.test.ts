// A Redis with a replica that takes its place.

import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import type { Stores } from "../../../src/agent/core/stores.ts";
import { createRedisStores } from "../../../src/engine/stores/redis/index.ts";
import { gate } from "../../support/gate.ts";
import { needing } from "../../support/needing.ts";
import { startCluster, startRedis, startReplica, type TestRedis, untilReplica } from "../../support/redis.ts";
import { startServer } from "../../support/server.ts";
import { numbers, post, view } from "../../support/sse.ts";
import { ADA, claimed, delta, done, keyOf, message, newRun, note, readAll, seqsOf, upTo } from "./fixture.ts";
import { audit } from "./redis-audit.ts";

const first = await startRedis();
const second = first && (await startReplica(first));
afterAll(async () => {
  await second?.close();
  await first?.close();
});

/** How far a server has come in all that the first one wrote. */
const offsetOf = (redis: TestRedis | undefined, role: "master" | "slave") =>
  Number(new RegExp(`${role}_repl_offset:(\\d+)`).exec(redis?.ask("INFO", "replication") ?? "")?.[1]);

/** Resolves when the second one has all that was written to the first one. */
async function caughtUp(): Promise<void> {
  const written = offsetOf(first, "master");
  await expect.poll(() => offsetOf(second, "slave")).toBeGreaterThanOrEqual(written);
}

/** What is written from now on is lost by the next failover. */
async function leaveBehind(): Promise<void> {
  await caughtUp();
  second?.ask("REPLICAOF", "NO", "ONE");
  second?.ask("CONFIG", "SET", "repl-diskless-sync-delay", "0");
}

/** The first one has what the second one had. */
async function failOver(): Promise<void> {
  first?.ask("REPLICAOF", "127.0.0.1", String(second?.port));
  if (first) await untilReplica(first);
  first?.ask("REPLICAOF", "NO", "ONE");
}

/** The replica follows the first one again. */
async function replicate(): Promise<void> {
  first?.ask("CONFIG", "SET", "repl-diskless-sync-delay", "0");
  second?.ask("REPLICAOF", "127.0.0.1", String(first?.port));
  if (second) await untilReplica(second);
}

needing(second, "redis-server").describe("a Redis with a replica", () => {
  let stores: Stores;
  const leaseMs = 1000;
  beforeEach(async () => {
    first?.ask("FLUSHALL");
    await replicate();
  });
  afterEach(() => stores?.close());

  test("confirms important writes only after the replica has them", async () => {
    stores = await createRedisStores({ url: first?.url ?? "", leaseMs, waitReplicas: 1 });
    const claim = await claimed(stores, "t");
    const said = (n: number) => stores.events.append(claim.lease, [n % 3 ? delta(`${n}`) : message(`${n}`)]);
    await Promise.all(upTo(30).map(said));
    expect(second?.ask("LLEN", second.ask("KEYS", "*:messages"))).toBe("10");

    await second?.pause();
    const missing = { code: "unavailable", message: expect.stringContaining("replica") };
    try {
      await stores.events.append(claim.lease, [delta("continues")]);
      await expect(stores.events.append(claim.lease, [message("31")])).rejects.toMatchObject(missing);
      await expect(stores.runs.start(ADA, newRun("u"), "reject")).rejects.toMatchObject(missing);
    } finally {
      await second?.resume();
    }
    await caughtUp();
    await stores.events.append(claim.lease, [message("32"), done()]);
    expect(second?.ask("EXISTS", second.ask("KEYS", "*{*:t}:lease") || "none")).toBe("0");
    expect(seqsOf(await readAll(stores, keyOf(claim)))).toEqual(upTo(34));
    expect(first && audit(first)).toEqual([]);
  });

  test("that replaces it without the latest writes lets no run continue as if it had them", async () => {
    stores = await createRedisStores({ url: first?.url ?? "", leaseMs });
    const kept = await claimed(stores, "kept");
    const behind = await claimed(stores, "behind");
    for (const { lease } of [kept, behind]) await stores.events.append(lease, [message("one")]);
    await leaveBehind();
    await stores.events.append(behind.lease, [message("lost")]);
    await failOver();
    await stores.events.append(kept.lease, [message("two"), done()]);
    await expect(stores.events.append(behind.lease, [done()])).rejects.toMatchObject({ code: "lease_lost" });
    const claims = [];
    while (claims.length === 0) claims.push(...(await stores.runs.claimAbandoned(5)));
    expect(claims).toMatchObject([{ run: { id: behind.run.id, attempt: 2 } }]);
    for (const { lease } of claims) await stores.events.append(lease, [message("again"), done()]);
    for (const { lease } of [kept, behind]) {
      expect(await stores.threads.messages(ADA, lease.thread_id)).toHaveLength(2);
      expect(await stores.threads.get(ADA, lease.thread_id)).toMatchObject({ status: "idle" });
    }
  });

  test("that has lost events that a reader saw reports the loss, immediately and whenever the reader returns", async () => {
    stores = await createRedisStores({ url: first?.url ?? "", leaseMs });
    const { lease } = await claimed(stores, "t");
    await stores.events.append(lease, [note("1"), note("2")]);
    await leaveBehind();
    await stores.events.append(
      lease,
      upTo(5).map((n) => note(`lost ${n}`)),
    );
    const live = stores.events.read(lease, 0, new AbortController().signal);
    expect(seqsOf((await live.next()).value ?? [])).toEqual(upTo(7));
    const told = expect(live.next()).rejects.toMatchObject({ code: "events_expired" });
    await failOver();
    const claims = [];
    while (claims.length === 0) claims.push(...(await stores.runs.claimAbandoned(5)));
    for (const claim of claims)
      await stores.events.append(claim.lease, [...upTo(20).map((n) => note(`again ${n}`)), done()]);
    await told;
    for (const seq of [3, 7]) {
      const cursor = { seq, epoch: 1 };
      expect(await stores.events.seen(lease, cursor)).toBe(2);
      const back = stores.events.read(lease, cursor, new AbortController().signal);
      await expect(back.next()).rejects.toMatchObject({ code: "events_expired" });
    }
    expect(seqsOf(await readAll(stores, lease, 2))).toEqual(upTo(23, 3));
  });

  test("that has lost events that a viewer saw sends a reset, and continues with the first event that the viewer has not seen", async () => {
    const gates = [gate(), gate()];
    let calls = 0;
    const script = () =>
      [
        { say: "Kept.", call: [{ tool: "gate" }] },
        { say: "Lost. Lost. Lost.", call: [{ tool: "other" }] },
        ...upTo(9).map(() => ({ say: "Said again, and at some length, after the failover." })),
      ][calls++];
    const server = await startServer({
      script,
      tools: gates.map(({ tool }, index) => (index === 0 ? tool : { ...tool, name: "other" })),
      agents: "agents: { assistant: { model: 'scripted:test', tools: [gate, other] } }",
      config: { store: "redis", redis: { url: first?.url, lease: "1s" } },
    });
    const runs = `${server.url}/threads/t/runs`;
    const viewer = await post(runs, { input: "go" });
    await gates[0]?.entered;
    await viewer.until(({ event }) => event === "on_tool_start");
    await leaveBehind();
    gates[0]?.open();
    const lost = await viewer.until(({ event }) => event === "on_tool_end");
    await gates[1]?.entered;
    await failOver();
    gates[1]?.open();
    await viewer.ended();
    const resets = viewer.others.filter((frame) => frame.startsWith("event: stream_reset"));
    expect(resets).toHaveLength(1);
    const resumed = viewer.seen.findIndex(({ event }) => event.event === "run_resumed");
    expect(numbers(viewer.seen.slice(resumed))[0]).toBe(numbers([lost])[0]);

    const headers = { "last-event-id": lost.id };
    const events = server.url + viewer.headers.get("location");
    expect((await fetch(events, { headers })).status).toBe(410);
    expect((await fetch(`${events}?after=${lost.id}`)).status).toBe(410);
    expect((await post(runs, { input: "go" }, headers)).status).toBe(410);
    const thread = await view(`${server.url}/threads/t/events`, { headers });
    await thread.until(({ event }) => event === "done");
    thread.leave();
    expect(thread.others.filter((frame) => frame.startsWith("event: stream_reset"))).toHaveLength(1);
    expect(thread.seen).toEqual(viewer.seen.slice(resumed));
  });
});

needing(second, "redis-server").test("a cluster cannot confirm replicas, and the error says so", async () => {
  const nodes = (await startCluster()) ?? [];
  try {
    const wrong = createRedisStores({ url: nodes[0]?.url ?? "", waitReplicas: 1 });
    await expect(wrong).rejects.toMatchObject({ code: "config_invalid" });
  } finally {
    for (const node of nodes) await node.close();
  }
});
