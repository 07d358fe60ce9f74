// The records of API keys, asked for once in a few seconds instead of with every request.

import { LRUCache } from "lru-cache";
import type { ApiKeyStore, KeptApiKey } from "./api-keys.ts";

/** How old an answer may be, in ms: for as long a key may work after it was revoked. */
const FRESH_MS = 3_000;
/** Past the bound the least recently used record is dropped. */
const MAX_FOUND = 10_000;
const MAX_MISSING = 1_000;

interface Answer {
  readonly key: KeptApiKey | undefined;
  readonly asked: number;
}

/** Finds a record by its id. Who asks for the same one at once gets the same answer. Throws what the store throws. */
export function cachedKeys(store: ApiKeyStore, now: () => number): ApiKeyStore["find"] {
  // Ids that somebody makes up must not drive out those that are in use.
  const found = new LRUCache<string, Answer>({ max: MAX_FOUND });
  const missing = new LRUCache<string, Answer>({ max: MAX_MISSING });
  const asking = new Map<string, Promise<KeptApiKey | undefined>>();

  return async (id) => {
    const known = found.get(id) ?? missing.get(id);
    if (known && isFresh(known)) return known.key;
    const asked = asking.get(id) ?? ask(id).finally(() => asking.delete(id));
    asking.set(id, asked);
    return asked;
  };

  async function ask(id: string): Promise<KeptApiKey | undefined> {
    // An answer is as old as its question.
    const asked = now();
    const key = await store.find(id);
    found.delete(id);
    missing.delete(id);
    (key ? found : missing).set(id, { key, asked });
    return key;
  }

  function isFresh({ asked }: Answer): boolean {
    const age = now() - asked;
    // A clock that was set back makes nothing fresh.
    return age >= 0 && age < FRESH_MS;
  }
}
