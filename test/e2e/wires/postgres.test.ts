// What stock clients are promised, on two replicas on one PostgreSQL, of which each request meets the other one.

import { afterAll } from "vitest";
import { onReplicas, unlessStored } from "../../support/deployments.ts";
import { needing } from "../../support/needing.ts";
import { deployAs } from "../../support/server.ts";
import { sharedPostgres } from "../../support/shared-stores.ts";
import { askedAndFollowed } from "./wires.ts";

const postgres = await sharedPostgres();
afterAll(() => postgres?.close());
if (postgres) deployAs(unlessStored(onReplicas(postgres)));

// What differs from Redis is below the wires: what one of them asks and follows is enough.
needing(postgres, "postgres").describe("ai-sdk on two replicas on PostgreSQL", async () => {
  await askedAndFollowed();
});
