// API keys in Redis, for all processes that use it. They stay until Redis is emptied.

import { type ApiKeyStore, apiKeyExists, type KeptApiKey, type NewApiKey } from "../../http/auth/api-keys.ts";
import { badCursor, decodePosition, encodePosition, pageOf } from "../page.ts";
import { openClients } from "./client.ts";
import { Connection } from "./connection.ts";
import { API_KEYS, apiKeyKey, apiKeysOf } from "./keys.ts";
import { createKey } from "./scripts/create-key.ts";
import { listKeys } from "./scripts/list-keys.ts";
import { type KeyReply, readKey } from "./scripts/read-key.ts";
import { revokeKey } from "./scripts/revoke-key.ts";

const DEADLINE_MS = 3_000;

/** With a connection of its own. Throws as `createRedisStores` does. */
export async function openRedisApiKeys(
  url: string,
  now?: () => number,
): Promise<{ keys: ApiKeyStore; close(): void }> {
  const clients = await openClients(url, DEADLINE_MS);
  const redis = new Connection(clients, DEADLINE_MS, now);
  return {
    keys: redisApiKeys(redis),
    close() {
      redis.close();
      clients.messages.disconnect();
    },
  };
}

export function redisApiKeys(redis: Pick<Connection, "run">): ApiKeyStore {
  return {
    async create({ id, hash, ...about }) {
      const keys = { key: apiKeyKey(id), all: API_KEYS, of: apiKeysOf(about.tenant) };
      const created = await redis.run(createKey, keys, { id, about: JSON.stringify(about), hash });
      if (created === 0) throw apiKeyExists(id);
      return { ...about, id, created_at: timeOf(created) };
    },

    find,

    async list({ limit, cursor, tenant }) {
      const list = tenant === undefined ? API_KEYS : apiKeysOf(tenant);
      const after = cursor === undefined ? "" : decodePosition(cursor).id;
      const ids = await redis.run(listKeys, { list }, { after, limit: limit + 1 });
      if (!ids) throw badCursor(cursor ?? "");
      const found = await Promise.all(ids.map(find));
      const keys = found.flatMap((kept) => (kept ? [shown(kept)] : []));
      return pageOf(keys, limit, ({ id, created_at }) =>
        encodePosition({ updatedAt: Date.parse(created_at), id }),
      );
    },

    async revoke(id) {
      const kept = keptOf(id, await redis.run(revokeKey, { key: apiKeyKey(id) }, {}));
      return kept && shown(kept);
    },
  };

  async function find(id: string): Promise<KeptApiKey | undefined> {
    return keptOf(id, await redis.run(readKey, { key: apiKeyKey(id) }, {}));
  }
}

function keptOf(id: string, [about, hash, created, revoked]: KeyReply): KeptApiKey | undefined {
  if (!about || !hash) return undefined;
  return {
    // Only `create` writes this field.
    ...(JSON.parse(about) as Omit<NewApiKey, "id" | "hash">),
    ...{ id, hash, created_at: timeOf(created) },
    ...(revoked ? { revoked_at: timeOf(revoked) } : {}),
  };
}

const timeOf = (ms: number | string | null | undefined) => new Date(Number(ms)).toISOString();

function shown({ hash: _, ...key }: KeptApiKey) {
  return key;
}
