// What stock clients are promised, on two replicas on one PostgreSQL, of which each request meets the other one.

import { afterAll } from "vitest";
import { onReplicas, unlessStored } from "../../support/deployments.ts";
import { needing } from "../../support/needing.ts";
import { deployAs } from "../../support/server.ts";
import { sharedPostgres } from "../../support/shared-stores.ts";
import { oneWire } from "./wires.ts";

const postgres = await sharedPostgres();
afterAll(() => postgres?.close());
if (postgres) deployAs(unlessStored(onReplicas(postgres)));

needing(postgres, "postgres").describe("langgraph on two replicas on PostgreSQL", async () => {
  await oneWire();
});
