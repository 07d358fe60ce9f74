// Connections to Redis that break, before or after the answer.

import { afterAll, describe, expect, test } from "vitest";
import { createRedisStores } from "../../src/stores/redis/index.ts";
import { deferredCallsContract } from "../contracts/deferred-calls.ts";
import { documentsContract } from "../contracts/documents.ts";
import { runsContract } from "../contracts/runs.ts";
import { threadsContract } from "../contracts/threads.ts";
import { cuttingProxy } from "../support/cutting-proxy.ts";
import { needing } from "../support/needing.ts";
import { startRedis } from "../support/redis.ts";
import {
  ADA,
  claimed,
  delta,
  done,
  keyOf,
  message,
  note,
  type Open,
  readAll,
  seqsOf,
  upTo,
} from "./fixture.ts";

const redis = await startRedis("--databases", "1000");
const proxy = redis && (await cuttingProxy(redis.port));
afterAll(async () => {
  await proxy?.close();
  await redis?.close();
});

needing(proxy, "redis-server").describe("connections that break", () => {
  test("again and again leave no gap, and nothing twice, in what viewers see", async () => {
    const stores = await createRedisStores({ url: `redis://127.0.0.1:${proxy?.port}` });
    const claim = await claimed(stores, `t${Math.random()}`);
    const reading = upTo(10).map(() => readAll(stores, keyOf(claim)));
    for (const n of upTo(200)) {
      if (n % 20 === 0) proxy?.cutAll();
      const written = stores.events.append(claim.lease, [n % 5 ? delta(`${n}`) : note(`${n}`)]);
      if (n % 10 === 0) await written;
    }
    await stores.events.append(claim.lease, [done()]);
    for (const entries of await Promise.all(reading)) expect(seqsOf(entries)).toEqual(upTo(201));
    await stores.close();
  });

  test("do not let a thread be deleted that is made again before its deletion is repeated", async () => {
    const [cut, other] = await Promise.all(
      [proxy, redis].map((way) => createRedisStores({ url: `redis://127.0.0.1:${way?.port}` })),
    );
    const [id, warm] = [`t${Math.random()}`, `u${Math.random()}`];
    for (const each of [warm, id]) await other?.threads.create(ADA, { id: each, metadata: {} });
    await cut?.threads.delete(ADA, warm);
    const before = proxy?.cuts ?? 0;
    proxy?.cutEvery(2); // the thread is loaded, and then deleted
    const deleting = cut?.threads.delete(ADA, id);
    while (proxy?.cuts === before) await new Promise(setImmediate);
    proxy?.cutEvery(0);
    await other?.threads.create(ADA, { id, metadata: {} });
    expect(await deleting).toBe(true);
    expect(await other?.threads.get(ADA, id)).toMatchObject({ id });
    await Promise.all([cut?.close(), other?.close()]);
  });

  describe("with the answer on its way do not make anything happen twice:", () => {
    let databases = 1;
    const cutting: Open = async (options) => {
      const database = databases++;
      const url = `redis://127.0.0.1:${proxy?.port}/${database}`;
      const opened = await createRedisStores({ url, ...options });
      proxy?.cutEvery(5);
      return {
        ...opened,
        async close() {
          proxy?.cutEvery(0);
          await opened.close();
        },
      };
    };
    test("what is said is said once", async () => {
      const opened = await cutting();
      const { lease } = await claimed(opened, "t");
      proxy?.cutEvery(3);
      for (const n of upTo(60)) await opened.events.append(lease, [n % 3 ? note(`${n}`) : message(`${n}`)]);
      await opened.events.append(lease, [done()]);
      proxy?.cutEvery(0);
      expect(seqsOf(await readAll(opened, lease))).toEqual(upTo(61));
      expect(await opened.threads.messages(ADA, "t")).toHaveLength(20);
      await opened.close();
    });

    test("whoever looks for abandoned runs gets them at once", async () => {
      let time = 0;
      const opened = await cutting({ now: () => time, maxAttempts: 1000 });
      const { run } = await claimed(opened, "t");
      proxy?.cutEvery(3);
      for (const attempt of upTo(20, 2)) {
        time += 10_001;
        expect(await opened.runs.claimAbandoned(100)).toMatchObject([{ run: { id: run.id, attempt } }]);
      }
      await opened.close();
    });

    threadsContract(cutting);
    runsContract(cutting);
    documentsContract(cutting);
    deferredCallsContract(cutting);
    test("they were cut, indeed", () => expect(proxy?.cuts).toBeGreaterThan(50));
  });
});
