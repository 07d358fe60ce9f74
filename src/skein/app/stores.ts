// The stores that the settings select.

import { AppError } from "../../agent/core/errors.ts";
import type { AllStores } from "../../engine/stores/all-stores.ts";
import type { Inspection } from "../../engine/stores/check/facts.ts";
import { markFailures } from "../../engine/stores/mark-failures.ts";
import { createMemoryStores } from "../../engine/stores/memory/index.ts";
import { DEFAULTS, type StoreOptions } from "../../engine/stores/options.ts";
import {
  createPostgresStores,
  inspectPostgres,
  openPostgresKeys,
} from "../../engine/stores/postgres/on-demand.ts";
import { createRedisStores, inspectRedis, openRedisKeys } from "../../engine/stores/redis/on-demand.ts";
import { createSqliteStores } from "../../engine/stores/sqlite/index.ts";
import { inspectSqlite } from "../../engine/stores/sqlite/inspection.ts";
import { openSqliteKeyFile } from "../../engine/stores/sqlite/key-file.ts";
import { createApiKeys } from "../../server/auth/api-keys.ts";
import type { ServerConfig } from "../../server/config/server.ts";
import { finishRestore } from "./restore.ts";

/** How long an unused thread is kept if `retention.threads` is not set, in ms. */
const THREAD_TTL_MS: Readonly<Record<ServerConfig["store"], number>> = {
  memory: DEFAULTS.threadTtlMs,
  postgres: Number.POSITIVE_INFINITY,
  redis: 30 * 86_400_000,
  sqlite: Number.POSITIVE_INFINITY,
};

export const threadTtl = ({ store, retention }: ServerConfig): number =>
  retention.threads ?? THREAD_TTL_MS[store];

/** Opens the stores. The caller closes them. `options` are described in `StoreOptions`. */
export const openStores = async (config: ServerConfig, options: StoreParts = {}): Promise<AllStores> =>
  markFailures(await storesOf(config, options));

type StoreParts = Pick<StoreOptions, "logger" | "now">;

async function storesOf(config: ServerConfig, options: StoreParts): Promise<AllStores> {
  const { store, data_dir, redis, postgres, limits, retention } = config;
  const all = {
    threadTtlMs: threadTtl(config),
    interruptedTtlMs: retention.interrupted_threads,
    queueLength: limits.queued_runs,
    tenantQueueLength: limits.waiting_threads,
    eventRetentionMs: retention.events,
    sweepMs: retention.sweep,
    ...options,
  };
  if (store === "sqlite") {
    await finishRestore(data_dir);
    return createSqliteStores({ dataDir: data_dir, ...all });
  }
  if (store === "redis") {
    const { url, lease: leaseMs, wait_replicas: waitReplicas } = redis;
    return createRedisStores({ url, leaseMs, waitReplicas, ...all });
  }
  if (store === "postgres") {
    const { url, lease: leaseMs, pool } = postgres;
    return createPostgresStores({ url, leaseMs, pool, ...all });
  }
  return createMemoryStores({ maxBytes: retention.memory_bytes, ...all });
}

/** How long events are kept if `retention.events` is not set, in ms. */
const EVENTS_MS = 86_400_000;

/** Opens the store for reading while a server uses it, and changes nothing. The caller closes it. Throws `unavailable`. */
export async function openInspection({
  store,
  data_dir,
  redis,
  postgres,
  retention,
}: ServerConfig): Promise<Inspection> {
  const options = { eventsMs: retention.events ?? EVENTS_MS };
  if (store === "redis") return inspectRedis(redis.url, options);
  if (store === "postgres") return inspectPostgres(postgres.url, options);
  if (store === "sqlite") return inspectSqlite(data_dir, options);
  throw new AppError("unavailable", "`STORE=memory` stores nothing on disk, so there is nothing to check.");
}

/** Opens the store of API keys for the command line and the server. The caller closes it. */
export async function openApiKeys(config: ServerConfig) {
  const { documents, close } = await openKeyDocuments(config);
  return { keys: createApiKeys(documents), close };
}

async function openKeyDocuments({ store, data_dir, redis, postgres }: ServerConfig) {
  if (store === "redis") return openRedisKeys(redis.url);
  if (store === "postgres") return openPostgresKeys(postgres.url);
  await finishRestore(data_dir);
  return openSqliteKeyFile(data_dir);
}
