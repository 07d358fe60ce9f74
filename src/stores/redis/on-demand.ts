// Stores in Redis, for programs that may do without: what they take to load is loaded with the first of them.

import type { ApiKeyStore } from "../../http/auth/api-keys.ts";
import type { AllStores } from "../all-stores.ts";
import type { RedisStoreOptions } from "./index.ts";

/** As that of `index.ts`. */
export async function createRedisStores(options: RedisStoreOptions): Promise<AllStores> {
  const redis = await import("./index.ts");
  return redis.createRedisStores(options);
}

/** As that of `api-keys.ts`. */
export async function openRedisApiKeys(url: string): Promise<{ keys: ApiKeyStore; close(): void }> {
  const redis = await import("./api-keys.ts");
  return redis.openRedisApiKeys(url);
}
