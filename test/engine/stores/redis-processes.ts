// Processes on one Redis, as stores that share nothing but it.

import { afterEach, beforeEach } from "vitest";
import type { Stores } from "../../../src/agent/core/stores.ts";
import { createRedisStores, type RedisStoreOptions } from "../../../src/engine/stores/redis/index.ts";
import type { TestRedis } from "../../support/redis.ts";
import { PATIENT } from "./fixture.ts";

/** Starts one more process, with `more` options; it ends with the test. */
export type OpenProcess = (more?: Partial<RedisStoreOptions>) => Promise<Stores>;

/** Processes of the tests of a `describe`, each of which begins with an empty Redis. */
export function processesOn(
  redis: TestRedis | undefined,
  options: Partial<RedisStoreOptions> = {},
): OpenProcess {
  let opened: Stores[] = [];
  beforeEach(() => {
    redis?.ask("FLUSHALL");
  });
  afterEach(async () => {
    for (const each of opened) await each.close();
    opened = [];
  });
  return async (more) => {
    const stores = await createRedisStores({
      url: redis?.url ?? "",
      ...PATIENT,
      ...options,
      ...more,
    });
    opened.push(stores);
    return stores;
  };
}
