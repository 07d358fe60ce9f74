// Stores in Redis, for programs that may do without: what they take to load is loaded with the first of them.

import type { Documents } from "../../../agent/core/documents.ts";
import type { AllStores } from "../all-stores.ts";
import type { Inspection } from "../check/facts.ts";
import type { RedisStoreOptions } from "./index.ts";

/** As that of `index.ts`. */
export async function createRedisStores(options: RedisStoreOptions): Promise<AllStores> {
  const redis = await import("./index.ts");
  return redis.createRedisStores(options);
}

/** As that of `index.ts`. */
export async function openRedisKeys(url: string): Promise<{ documents: Documents; close(): void }> {
  const redis = await import("./index.ts");
  return redis.openRedisKeys(url);
}

/** As that of `inspection.ts`. */
export async function inspectRedis(url: string, options: { eventsMs: number }): Promise<Inspection> {
  const redis = await import("./inspection.ts");
  return redis.inspectRedis(url, options);
}
