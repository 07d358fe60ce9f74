// A Redis with a replica that takes its place.

import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Stores } from "../../src/core/stores.ts";
import { createRedisStores } from "../../src/stores/redis/index.ts";
import { startCluster, startRedis, startReplica, untilReplica } from "../support/redis.ts";
import { ADA, claimed, delta, done, keyOf, message, newRun, readAll, seqsOf, upTo } from "./fixture.ts";
import { audit } from "./redis-audit.ts";

const first = await startRedis();
const second = first && (await startReplica(first));
afterAll(async () => {
  await second?.close();
  await first?.close();
});

describe.skipIf(!second)("a Redis with a replica", () => {
  let stores: Stores;
  const leaseMs = 1000;
  beforeEach(() => void first?.ask("FLUSHALL"));
  afterEach(() => stores?.close());

  test("has written what counts only when the replica has it", async () => {
    stores = await createRedisStores({ url: first?.url ?? "", leaseMs, waitReplicas: 1 });
    const claim = await claimed(stores, "t");
    const said = (n: number) => stores.events.append(claim.lease, [n % 3 ? delta(`${n}`) : message(`${n}`)]);
    await Promise.all(upTo(30).map(said));
    expect(second?.ask("LLEN", second.ask("KEYS", "*:messages"))).toBe("10");

    await second?.pause();
    const missing = { code: "unavailable", message: expect.stringContaining("replica") };
    try {
      await stores.events.append(claim.lease, [delta("goes on")]);
      await expect(stores.events.append(claim.lease, [message("31")])).rejects.toMatchObject(missing);
      await expect(stores.runs.start(ADA, newRun("u"), "reject")).rejects.toMatchObject(missing);
    } finally {
      await second?.resume();
    }
    await stores.events.append(claim.lease, [message("32"), done()]);
    expect(second?.ask("EXISTS", second.ask("KEYS", "*{*:t}:lease") || "none")).toBe("0");
    expect(seqsOf(await readAll(stores, keyOf(claim)))).toEqual(upTo(34));
    expect(first && audit(first)).toEqual([]);
  });

  test("that takes its place with less than there was lets nobody go on as if it had all", async () => {
    stores = await createRedisStores({ url: first?.url ?? "", leaseMs });
    const kept = await claimed(stores, "kept");
    const behind = await claimed(stores, "behind");
    for (const { lease } of [kept, behind]) await stores.events.append(lease, [message("one")]);
    first?.ask("WAIT", "1", "1000");
    second?.ask("REPLICAOF", "NO", "ONE");
    second?.ask("CONFIG", "SET", "repl-diskless-sync-delay", "0");
    await stores.events.append(behind.lease, [message("lost")]);
    // From now on the first one has what the second one had.
    first?.ask("REPLICAOF", "127.0.0.1", String(second?.port));
    if (first) await untilReplica(first);
    first?.ask("REPLICAOF", "NO", "ONE");
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
});

test.skipIf(!second)("a cluster cannot be waited for, and says so", async () => {
  const nodes = (await startCluster()) ?? [];
  try {
    const wrong = createRedisStores({ url: nodes[0]?.url ?? "", waitReplicas: 1 });
    await expect(wrong).rejects.toMatchObject({ code: "config_invalid" });
  } finally {
    for (const node of nodes) await node.close();
  }
});
