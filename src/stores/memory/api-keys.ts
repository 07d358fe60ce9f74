// API keys in memory, gone with the process: for programs that make their own.

import { AppError } from "../../core/errors.ts";
import { type ApiKey, type ApiKeyStore, apiKeyExists, type KeptApiKey } from "../../http/auth/api-keys.ts";
import { jsonCopy } from "../../lib/json.ts";
import { decodePosition, encodePosition, pageOf } from "../page.ts";

/** One more is refused with `limit_exceeded`. Those that are revoked count: an id is never taken twice. */
const MAX_KEYS = 100_000;

export function memoryApiKeys(now: () => number = Date.now): ApiKeyStore {
  const keys = new Map<string, KeptApiKey>();
  const time = () => new Date(now()).toISOString();

  return {
    async create(key) {
      if (keys.has(key.id)) throw apiKeyExists(key.id);
      if (keys.size >= MAX_KEYS)
        throw new AppError("limit_exceeded", `There are ${MAX_KEYS} API keys already.`);
      const kept = jsonCopy({ ...key, created_at: time() });
      keys.set(key.id, kept);
      return shown(kept);
    },

    async find(id) {
      const kept = keys.get(id);
      return kept && jsonCopy(kept);
    },

    async list({ limit, cursor, tenant }) {
      const before = cursor === undefined ? undefined : decodePosition(cursor);
      const found = [...keys.values()]
        .map((kept) => ({ kept, at: Date.parse(kept.created_at) }))
        .filter(({ kept }) => tenant === undefined || kept.tenant === tenant)
        .filter(
          ({ kept: { id }, at }) =>
            !before || at < before.updatedAt || (at === before.updatedAt && id < before.id),
        )
        .sort((a, b) => b.at - a.at || (a.kept.id < b.kept.id ? 1 : -1));
      const page = found.slice(0, limit + 1).map(({ kept }) => shown(kept));
      return pageOf(page, limit, ({ id, created_at }) =>
        encodePosition({ updatedAt: Date.parse(created_at), id }),
      );
    },

    async revoke(id) {
      const kept = keys.get(id);
      if (!kept) return undefined;
      kept.revoked_at ??= time();
      return shown(kept);
    },
  };
}

function shown({ hash: _, ...key }: KeptApiKey): ApiKey {
  return jsonCopy(key);
}
