// What stock clients are promised, on two replicas of which each request meets the other one.

import { afterAll } from "vitest";
import { onReplicas, unlessStored } from "../../support/deployments.ts";
import { needing } from "../../support/needing.ts";
import { deployAs } from "../../support/server.ts";
import { sharedRedis } from "../../support/shared-stores.ts";
import { oneWire } from "./wires.ts";

const redis = await sharedRedis();
afterAll(() => redis?.close());
if (redis) deployAs(unlessStored(onReplicas(redis)));

needing(redis, "redis-server").describe("langgraph on two replicas", async () => {
  await oneWire();
});
