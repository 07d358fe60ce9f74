import { afterAll, expect } from "vitest";
import { createRedisStores } from "../../../src/engine/stores/redis/index.ts";
import { anyCommandsContract } from "../../contracts/any-commands.ts";
import { busContract } from "../../contracts/bus.ts";
import { deferredCallsContract } from "../../contracts/deferred-calls.ts";
import { documentsContract } from "../../contracts/documents.ts";
import { documentListsContract } from "../../contracts/documents-lists.ts";
import { documentStepsContract } from "../../contracts/documents-steps.ts";
import { eventsContract } from "../../contracts/events.ts";
import { itemLivesContract } from "../../contracts/items-lives.ts";
import { nounsOfDocumentsContract, nounsWithRunsContract } from "../../contracts/nouns.ts";
import { ownersContract } from "../../contracts/owners.ts";
import { runsContract } from "../../contracts/runs.ts";
import { schedulesContract } from "../../contracts/schedules.ts";
import { storesContract } from "../../contracts/stores.ts";
import { threadsContract } from "../../contracts/threads.ts";
import { needing } from "../../support/needing.ts";
import { startRedis } from "../../support/redis.ts";
import { checkedAfter } from "../../support/store-check.ts";
import { openingAgain, PATIENT } from "./fixture.ts";
import { audit } from "./redis-audit.ts";

const redis = await startRedis("--databases", "1000");
afterAll(() => redis?.close());

let databases = 0;

/** After each use, everything that is left must have its place and its time. */
const open = openingAgain(
  () => databases++,
  async (database, options) => {
    if (!redis) throw new Error("There is no Redis.");
    const stores = await createRedisStores({
      ...{ url: `${redis.url}/${database}`, ...PATIENT },
      ...options,
    });
    return {
      ...stores,
      async close() {
        await stores.close();
        expect(audit(redis, database)).toEqual([]);
      },
    };
  },
  true,
);

needing(redis, "redis-server").describe("redis stores", () => {
  threadsContract(open);
  runsContract(open);
  eventsContract(open);
  anyCommandsContract(
    checkedAfter(open, () => ({ redis: `${redis?.url}/${databases - 1}` }), "call_without_message"),
    25,
  );
  documentsContract(open);
  documentListsContract(open);
  documentStepsContract(open);
  itemLivesContract(open);
  deferredCallsContract(open);
  busContract(open);
  ownersContract(open);
  storesContract(open);
  nounsWithRunsContract(open);
  nounsOfDocumentsContract(open);
  schedulesContract(open);
});
