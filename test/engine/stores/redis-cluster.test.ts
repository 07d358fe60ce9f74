// The same stores on several servers that share the work.

import { afterAll, expect, test } from "vitest";
import { createRedisStores } from "../../../src/engine/stores/redis/index.ts";
import { busContract } from "../../contracts/bus.ts";
import { deferredCallsContract } from "../../contracts/deferred-calls.ts";
import { documentsContract } from "../../contracts/documents.ts";
import { eventsContract } from "../../contracts/events.ts";
import { itemLivesContract } from "../../contracts/items-lives.ts";
import { runsContract } from "../../contracts/runs.ts";
import { storesContract } from "../../contracts/stores.ts";
import { threadsContract } from "../../contracts/threads.ts";
import { needing } from "../../support/needing.ts";
import { startCluster } from "../../support/redis.ts";
import {
  ADA,
  claimed,
  done,
  keyOf,
  message,
  note,
  type Open,
  PATIENT,
  readAll,
  seqsOf,
  upTo,
} from "./fixture.ts";

const nodes = await startCluster();
afterAll(async () => {
  for (const node of nodes ?? []) await node.close();
});

const open: Open = async (options) => {
  for (const node of nodes ?? []) node.ask("FLUSHALL");
  return createRedisStores({ url: nodes?.[0]?.url ?? "", ...PATIENT, ...options });
};

needing(nodes, "redis-server").describe("redis stores on a cluster", () => {
  threadsContract(open);
  runsContract(open);
  eventsContract(open);
  documentsContract(open);
  itemLivesContract(open);
  deferredCallsContract(open);
  busContract(open);
  storesContract(open);

  test("use all of its servers, and each thread uses one of them", async () => {
    const stores = await open();
    const claims = await Promise.all(upTo(30).map((n) => claimed(stores, `t${n}`)));
    const reading = claims.map((claim) => readAll(stores, keyOf(claim)));
    for (const { lease } of claims) await stores.events.append(lease, [note("x"), message("x"), done()]);
    for (const entries of await Promise.all(reading)) expect(seqsOf(entries)).toEqual([1, 2, 3]);
    expect((await stores.threads.list(ADA, { limit: 50 })).items).toHaveLength(30);
    for (const node of nodes ?? []) expect(node.ask("KEYS", "*:meta")).not.toBe("");
    await stores.close();
  });
});
