// A Redis that is restarted, killed, silent, full, or forgets.

import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { userMessage } from "../../../src/agent/core/message.ts";
import type { Claim } from "../../../src/agent/core/stores.ts";
import type { AllStores } from "../../../src/engine/stores/all-stores.ts";
import { createRedisStores, type RedisStoreOptions } from "../../../src/engine/stores/redis/index.ts";
import { everyCall } from "../../contracts/every-call.ts";
import { needing } from "../../support/needing.ts";
import { reachable } from "../../support/reachable.ts";
import { startRedis } from "../../support/redis.ts";
import {
  ADA,
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
import { audit } from "./redis-audit.ts";

const durable = await startRedis("--appendonly", "yes", "--appendfsync", "always");
const forgetful = await startRedis();
afterAll(async () => {
  await durable?.close();
  await forgetful?.close();
});

const unavailable = { code: "unavailable" };
let stores: AllStores;
/** A busy machine answers within it, and it is over while a test looks. */
const deadlineMs = 2_000;
const open = async (url = "", more: Partial<RedisStoreOptions> = {}) => {
  stores = await createRedisStores({ url, ...more });
};
afterEach(() => stores?.close());

/** Reads the run's first entry and then waits for more. Returns what resolves with the numbers of the others. */
async function follow(claim: Claim): Promise<() => Promise<number[]>> {
  const reader = stores.events.read(keyOf(claim), 0, new AbortController().signal);
  await reader.next();
  const next = reader.next();
  return async () => {
    const seqs = seqsOf((await next).value ?? []);
    for await (const batch of reader) seqs.push(...seqsOf(batch));
    return seqs;
  };
}

needing(durable, "redis-server").describe("a Redis with a disk", () => {
  beforeEach(() => void durable?.ask("FLUSHALL"));

  test("that is killed and restarted has the whole output, and readers miss nothing", async () => {
    await open(durable?.url, { leaseMs: 60_000 });
    const claim = await claimed(stores, "t");
    const reading = upTo(20).map(() => readAll(stores, keyOf(claim)));
    const said: Promise<void>[] = [];
    const say = async (count: number) => {
      for (const n of upTo(count)) {
        said.push(stores.events.append(claim.lease, [n % 10 ? delta(`${n}`) : message(`${n}`)]));
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    };
    for (let n = 0; n < 3; n++) {
      const [, saying] = [await say(50), say(50)];
      await durable?.kill();
      await durable?.start();
      await saying;
    }
    await Promise.all(said);
    await stores.events.append(claim.lease, [done()]);
    for (const entries of await Promise.all(reading)) expect(seqsOf(entries)).toEqual(upTo(301));
    expect(await stores.threads.messages(ADA, "t")).toHaveLength(30);
    expect(durable && audit(durable)).toEqual([]);
  });

  test("is unavailable for a limited time, and used again when it is back", async () => {
    await open(durable?.url, { deadlineMs, leaseMs: deadlineMs });
    const claim = await claimed(stores, "t");
    await stores.events.append(claim.lease, [note("one")]);
    const reading = await follow(claim);
    await durable?.kill();
    const words = upTo(10).map((n) => stores.events.append(claim.lease, [delta(`${n}`)]));
    const results = await Promise.allSettled([
      ...[stores.events.append(claim.lease, [message("two")]), ...words],
      ...[stores.runs.start(ADA, newRun("u"), "reject"), stores.threads.get(ADA, "t"), stores.ping()],
    ]);
    for (const each of results) expect(each).toMatchObject({ status: "rejected", reason: unavailable });
    await durable?.start();
    await reachable(stores);
    expect(await stores.threads.get(ADA, "u")).toBeUndefined();
    await stores.events.append(claim.lease, [message("three"), done()]);
    expect(await reading()).toEqual([2, 3]);
    expect(await stores.threads.messages(ADA, "t")).toHaveLength(1);
  });

  test("is awaited by processes that execute a run, as long as a lease lasts", async () => {
    await open(durable?.url, { deadlineMs, leaseMs: 60_000 });
    const { lease } = await claimed(stores, "t");
    await stores.runs.steer(ADA, "t", lease.run_id, userMessage("left"));
    await durable?.kill();
    const inbox = stores.runs.inbox(lease);
    const written = stores.events.append(lease, [note("one"), message("two")]);
    await expect(stores.runs.renew(lease)).rejects.toMatchObject(unavailable);
    await expect(stores.threads.get(ADA, "t")).rejects.toMatchObject(unavailable);
    await durable?.start();
    expect(await inbox).toHaveLength(1);
    await written;
    await stores.events.append(lease, [done()]);
    expect(seqsOf(await readAll(stores, lease))).toEqual(upTo(4));
  });

  test.each(["away", "silent"])("that is %s is awaited by every call inside a run", async (how) => {
    await open(durable?.url, { deadlineMs, leaseMs: 60_000 });
    const { lease } = await claimed(stores, "t");
    await stores.events.append(lease, [note("one")]);
    await (how === "away" ? durable?.kill() : durable?.pause());
    const inside = stores.inRun(() => Promise.allSettled(everyCall(stores, lease).map((call) => call())));
    const outside = await Promise.allSettled([stores.threads.get(ADA, "t"), stores.quotas.held(ADA)]);
    for (const each of outside) expect(each).toMatchObject({ status: "rejected", reason: unavailable });
    await (how === "away" ? durable?.start() : durable?.resume());
    for (const [index, result] of (await inside).entries())
      expect(result, `${everyCall(stores, lease)[index]}`).not.toMatchObject({ reason: unavailable });
  });

  test("that is silent is not awaited, and nothing is repeated when it responds again", async () => {
    await open(durable?.url, { deadlineMs, leaseMs: deadlineMs });
    const claim = await claimed(stores, "t");
    await stores.events.append(claim.lease, [note("one")]);
    const reading = await follow(claim);
    await durable?.pause();
    const late = stores.events.append(claim.lease, [message("late")]);
    await expect(late).rejects.toMatchObject(unavailable);
    await expect(stores.ping()).rejects.toMatchObject(unavailable);
    await durable?.resume();
    await reachable(stores);
    await stores.events.append(claim.lease, [note("x"), done()]);
    // What came too late may have arrived nevertheless, once.
    const messages = await stores.threads.messages(ADA, "t");
    expect(await reading()).toEqual(upTo(3 + messages.length, 2));
    expect(messages.length).toBeLessThanOrEqual(1);
  });

  test("that was unavailable for longer than a lease lets live processes keep their runs", async () => {
    // The others wait for half of it after the outage.
    const leaseMs = 10_000;
    await open(durable?.url, { leaseMs });
    const other = await createRedisStores({ url: durable?.url ?? "", leaseMs });
    const claim = await claimed(stores, "t");
    await durable?.kill();
    await new Promise((resolve) => setTimeout(resolve, leaseMs + 100));
    await durable?.start();
    await reachable(other);
    const { runs } = other;
    expect(await Promise.all([runs.claimAbandoned(100), runs.claimNext(ADA, "t")])).toEqual([[], undefined]);
    await stores.runs.renew(claim.lease);
    await stores.close();
    await expect.poll(() => runs.claimAbandoned(100)).toMatchObject([{ run: { id: claim.run.id } }]);
    await other.close();
  });

  test("that is temporarily a replica is awaited", async () => {
    await open(durable?.url);
    const { lease } = await claimed(stores, "t");
    durable?.ask("REPLICAOF", "127.0.0.1", "1");
    const written = stores.events.append(lease, [message("x"), done()]);
    const read = await stores.threads.get(ADA, "t");
    expect(read?.status).toBe("busy");
    durable?.ask("REPLICAOF", "NO", "ONE");
    await written;
    expect(await stores.threads.messages(ADA, "t")).toHaveLength(1);
  });
});

needing(forgetful, "redis-server").describe("a Redis without a disk", () => {
  beforeEach(async () => {
    forgetful?.ask("FLUSHALL");
    await open(forgetful?.url);
  });

  test("that loses its scripts gets them again", async () => {
    const { lease } = await claimed(stores, "t");
    for (const n of upTo(3)) {
      forgetful?.ask("SCRIPT", "FLUSH");
      await Promise.all([stores.events.append(lease, [message(`${n}`)]), stores.threads.get(ADA, "t")]);
    }
    expect(await stores.threads.messages(ADA, "t")).toHaveLength(3);
  });

  test("that lost the runs in a restart returns an error to their writers and readers", async () => {
    const claim = await claimed(stores, "t");
    await stores.events.append(claim.lease, [message("one")]);
    const reading = await follow(claim);
    const told = expect(reading()).rejects.toMatchObject({ code: "events_expired" });
    await forgetful?.kill();
    await forgetful?.start();
    const lost = { code: "lease_lost" };
    await expect(stores.events.append(claim.lease, [note("three")])).rejects.toMatchObject(lost);
    await expect(stores.runs.renew(claim.lease)).rejects.toMatchObject(lost);
    await told;
    const { lease } = await claimed(stores, "t");
    await stores.events.append(lease, [done()]);
    expect(seqsOf(await readAll(stores, lease))).toEqual([1]);
  });

  test("that has lost the latest writes lets no run continue as if it had them", async () => {
    const claim = await claimed(stores, "t");
    await stores.events.append(claim.lease, [note("one")]);
    const place = forgetful?.ask("KEYS", "*:lease") ?? "";
    await stores.events.append(claim.lease, [message("two")]);
    forgetful?.ask("HSET", place, "seq", "1");
    const lost = { code: "lease_lost" };
    await expect(stores.events.append(claim.lease, [message("three")])).rejects.toMatchObject(lost);
    expect(await stores.threads.messages(ADA, "t")).toHaveLength(1);
  });

  test("that is full refuses new work, changes nothing partially, and accepts the end of a run", async () => {
    await stores.close();
    await open(forgetful?.url, { deadlineMs, leaseMs: deadlineMs });
    const claim = await claimed(stores, "t");
    await stores.runs.steer(ADA, "t", claim.run.id, userMessage("left"));
    const free = forgetful?.ask("CONFIG", "GET", "maxmemory").split("\n")[1] ?? "0";
    forgetful?.ask("CONFIG", "SET", "maxmemory", "1");
    try {
      const full = { ...unavailable, message: expect.stringContaining("full") };
      const { lease } = claim;
      for (const refused of [
        () => stores.events.append(lease, [delta("x")]),
        () => stores.events.append(lease, [message("x"), state("a", 1)]),
        () => stores.runs.start(ADA, newRun("u"), "reject"),
        () => stores.runs.steer(ADA, "t", lease.run_id, userMessage("more")),
        () => stores.threads.create(ADA, { id: "v", metadata: {} }),
        () => stores.ping(),
      ])
        await expect(refused(), refused.toString()).rejects.toMatchObject(full);
      expect(await stores.runs.renew(lease)).toEqual({});
      await stores.events.append(lease, [message("the end"), done("error")]);
    } finally {
      forgetful?.ask("CONFIG", "SET", "maxmemory", free);
    }
    expect(seqsOf(await readAll(stores, keyOf(claim)))).toEqual([1, 2, 3]);
    expect(await stores.threads.messages(ADA, "t")).toHaveLength(2);
    expect(await stores.threads.get(ADA, "t")).toMatchObject({ status: "error" });
    for (const id of ["u", "v"]) expect(await stores.threads.get(ADA, id)).toBeUndefined();
    await claimed(stores, "t");
  });

  test("that would evict runs is refused", async () => {
    forgetful?.ask("CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru");
    try {
      await expect(createRedisStores({ url: forgetful?.url ?? "" })).rejects.toMatchObject({
        ...{ code: "config_invalid", message: expect.stringContaining("noeviction") },
      });
    } finally {
      forgetful?.ask("CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction");
    }
  });

  test("that is not Redis is refused, without showing the password", async () => {
    const wrong = createRedisStores({ url: "redis://ada:secret@127.0.0.1:1/0", deadlineMs });
    await expect(wrong).rejects.toMatchObject({ ...unavailable, message: /^(?!.*secret).*127\.0\.0\.1:1/ });
  });
});
