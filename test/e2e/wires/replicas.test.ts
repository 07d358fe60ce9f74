// What stock clients are promised, on two replicas of which each request meets the other one.

import { afterAll } from "vitest";
import { onReplicas, unlessStored } from "../../support/deployments.ts";
import { needing } from "../../support/needing.ts";
import { deployAs } from "../../support/server.ts";
import { sharedRedis } from "../../support/shared-stores.ts";
import { WIRES } from "./wires.ts";

const redis = await sharedRedis();
afterAll(() => redis?.close());
if (redis) deployAs(unlessStored(onReplicas(redis)));

for (const [wire, load] of Object.entries(WIRES)) {
  needing(redis, "redis-server").describe(`${wire} on two replicas`, async () => {
    await load();
  });
}
