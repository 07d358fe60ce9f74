// The stores that several servers may share, each a real one.

import { startPostgres } from "./postgres.ts";
import { startRedis } from "./redis.ts";
import { sampled } from "./seed.ts";

export interface SharedStore {
  readonly kind: "redis" | "postgres";
  /** The url of an empty database. */
  database(): Promise<string>;
  /** As by `kill -9`. What it has confirmed stays. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** It is there, and silent. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Breaks the connections of one kind. */
  cut(which: "messages" | "commands"): Promise<void>;
  close(): Promise<void>;
}

/** Undefined where there is none: see needing.ts. */
export async function sharedRedis(): Promise<SharedStore | undefined> {
  const redis = await startRedis("--appendonly", "yes", "--appendfsync", "no", "--databases", "1000");
  if (!redis) return undefined;
  let databases = 0;
  return {
    ...redis,
    kind: "redis",
    database: async () => `${redis.url}/${databases++}`,
    async cut(which) {
      redis.ask("CLIENT", "KILL", "TYPE", which === "messages" ? "pubsub" : "normal");
    },
  };
}

/** The same. */
export async function sharedPostgres(): Promise<SharedStore | undefined> {
  const postgres = await startPostgres();
  if (!postgres) return undefined;
  return {
    ...postgres,
    kind: "postgres",
    async cut(which) {
      await postgres.ask(
        postgres.url,
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = '${which === "messages" ? "skein notifications" : "skein"}'`,
      );
    },
  };
}

/** With the program that each of them needs. */
export const SHARED_STORES = [
  { start: sharedRedis, program: "redis-server" },
  { start: sharedPostgres, program: "postgres" },
] as const;

/** The stores for promises that do not depend on the store: both of them at night, and Redis alone otherwise. */
export const USUAL_STORES = sampled(SHARED_STORES, 2);
