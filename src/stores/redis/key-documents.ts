// The documents of a Redis by themselves, for programs that only look after API keys.

import type { Documents } from "../../core/documents.ts";
import { openClients } from "./client.ts";
import { Connection } from "./connection.ts";
import { redisDocuments } from "./documents.ts";
import { joinRedis } from "./format.ts";
import { importKeys } from "./import.ts";

const DEADLINE_MS = 3_000;

/** With a connection of its own. Throws as `createRedisStores` does. */
export async function openRedisKeys(
  url: string,
  now?: () => number,
): Promise<{ documents: Documents; close(): void }> {
  const clients = await openClients(url, DEADLINE_MS);
  const redis = new Connection(clients, DEADLINE_MS, now);
  const close = () => {
    redis.close();
    clients.messages.disconnect();
  };
  try {
    await joinRedis(redis);
    const documents = redisDocuments({ redis });
    await importKeys(redis, documents);
    return { documents, close };
  } catch (error) {
    close();
    throw error;
  }
}
