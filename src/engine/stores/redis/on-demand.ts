// Loads the Redis stores on first use, for programs that may not need them.

import type { Documents } from "../../../agent/core/documents.ts";
import type { AllStores } from "../all-stores.ts";
import type { Inspection } from "../check/facts.ts";
import type { RedisStoreOptions } from "./index.ts";

/** Loads `index.ts` and calls its function of the same name. */
export async function createRedisStores(options: RedisStoreOptions): Promise<AllStores> {
  const redis = await import("./index.ts");
  return redis.createRedisStores(options);
}

/** Loads `index.ts` and calls its function of the same name. */
export async function openRedisKeys(url: string): Promise<{ documents: Documents; close(): void }> {
  const redis = await import("./index.ts");
  return redis.openRedisKeys(url);
}

/** Loads `inspection.ts` and calls its function of the same name. */
export async function inspectRedis(url: string, options: { eventsMs: number }): Promise<Inspection> {
  const redis = await import("./inspection.ts");
  return redis.inspectRedis(url, options);
}
