// Records when connections were last used. The times are stored separately, because a use does not change a connection
// and must not postpone the vault's next check of the connection.

import { LRUCache } from "lru-cache";
import { change, type Documents, type OwnedCollection, remove, retain } from "../../agent/core/documents.ts";
import type { Logger } from "../../lib/logger.ts";
import { atMost } from "../../lib/lru.ts";
import type { Keeper } from "./credential.ts";

/** The minimum time between two records of a connection's use, in milliseconds. */
const EVERY_MS = 60_000;
/** The number of connections whose last recorded use a process remembers. */
const MAX_REMEMBERED = 10_000;

const usesOf = ({ tenant, user }: Keeper): OwnedCollection =>
  user === undefined ? { kind: "connection_uses", tenant } : { kind: "connection_uses", tenant, user };

export interface Uses {
  /** Returns at once and does not throw. */
  note(keeper: Keeper, id: string): void;
  /** Returns the times of the last uses, in the order of `ids`. Undefined for a connection that was never used. */
  of(keeper: Keeper, ids: readonly string[]): Promise<readonly (string | undefined)[]>;
  forget(keeper: Keeper, id: string): Promise<void>;
  forgetAll(keeper: Keeper): Promise<void>;
  /** Waits until all uses have been recorded. */
  close(): Promise<void>;
}

/** The caller closes it. */
export function createUses(documents: Documents, logger: Logger): Uses {
  const noted = new LRUCache<string, true>({ ...atMost(MAX_REMEMBERED), ttl: EVERY_MS });
  const writing = new Set<Promise<void>>();
  const write = (keeper: Keeper, id: string) =>
    change(documents, { collection: usesOf(keeper), keys: [id] }, ({ found: [found], now }) => {
      // Another process may already have recorded a recent use.
      const isRecent = found !== undefined && now - Date.parse(found.body) < EVERY_MS;
      if (isRecent) return { result: undefined };
      return {
        writes: [{ key: id, seen: found?.version, body: new Date(now).toISOString() }],
        result: undefined,
      };
    });

  return {
    note(keeper, id) {
      const key = JSON.stringify([keeper.tenant, keeper.user, id]);
      if (noted.has(key)) return;
      noted.set(key, true);
      const work = write(keeper, id)
        .catch((err: unknown) => {
          noted.delete(key);
          logger.warn({ ...keeper, connection: id, err }, "could not note the use of a connection");
        })
        .finally(() => writing.delete(work));
      writing.add(work);
    },
    async of(keeper, ids) {
      if (ids.length === 0) return [];
      const { found } = await documents.read(usesOf(keeper), ids);
      return found.map((each) => each?.body);
    },
    async forget(keeper, id) {
      noted.delete(JSON.stringify([keeper.tenant, keeper.user, id]));
      await remove(documents, usesOf(keeper), id);
    },
    async forgetAll(keeper) {
      await retain(documents, usesOf(keeper), { count: 0 });
    },
    async close() {
      await Promise.all(writing);
    },
  };
}
