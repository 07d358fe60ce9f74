// API key authentication.

import type { FastifyRequest } from "fastify";
import { LRUCache } from "lru-cache";
import { atMost } from "../../lib/lru.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { timingSafeEqualText } from "../../lib/text.ts";
import { type ApiKey, type ApiKeyStore, type KeptApiKey, type ReadKey, readApiKey } from "./api-keys.ts";
import { type Authenticate, bearerToken, hasBearer, onlyHeader, unauthorized } from "./credentials.ts";

const MISSING = "Send an API key: `Authorization: Bearer sk_…`, or `X-API-Key: sk_…`.";
/** The message is the same for every cause, so it reveals nothing about existing keys. */
const REFUSED = "The API key is unknown, expired, revoked or incomplete.";

/** A hash that matches no key. */
const NO_HASH = "0".repeat(64);

/**
 * `find` may return cached records, as `cachedKeys` does. A revoked key is then refused by every process within a few
 * seconds.
 */
export function authenticateApiKey(find: ApiKeyStore["find"], now: () => number = Date.now): Authenticate {
  return async (request) => {
    const given = sentKey(request);
    const key = await find(given.id);
    // Compares even for an unknown id, so the response takes as long as for a wrong secret.
    const fits = timingSafeEqualText(given.hash, key?.hash ?? NO_HASH);
    if (!key || !fits || isOver(key, now())) throw unauthorized(REFUSED);
    const { tenant, user, scopes, expires_at } = key;
    const end = expires_at === undefined ? undefined : Date.parse(expires_at);
    return { tenant, user, scopes, api_key: key.id, ...omitUndefined({ expires_at: end }) };
  };
}

/**
 * Returns the key that a request sends. Some clients fill both headers. Two equal keys count as one, and if only one
 * value looks like a key, the other value is ignored. Throws `unauthorized` if there is no key, or if there are two
 * different ones.
 */
function sentKey(request: FastifyRequest): ReadKey {
  const header = onlyHeader(request, "x-api-key");
  const own = header === undefined ? undefined : readApiKey(header);
  const token = own && !hasBearer(request) ? undefined : bearerToken(request);
  const bearer = token === undefined ? undefined : readApiKey(token);
  if (bearer && own && bearer.hash !== own.hash)
    throw unauthorized(
      "The headers `authorization` and `x-api-key` contain different API keys. Send one of them.",
    );
  const given = bearer ?? own;
  if (given) return given;
  throw unauthorized((token ?? header) ? REFUSED : MISSING);
}

/** Returns true if the key was revoked or has expired. */
export function isOver({ revoked_at, expires_at }: ApiKey, time: number): boolean {
  // An expiry that cannot be parsed counts as expired.
  return revoked_at !== undefined || (expires_at !== undefined && !(time < Date.parse(expires_at)));
}

/** How long a record stays cached, in ms. A revoked key may keep working for that long. */
const FRESH_MS = 3_000;
/** The maximum number of cached records. The least recently used record is dropped first. */
const MAX_FOUND = 10_000;
const MAX_MISSING = 1_000;

interface KeyLookup {
  readonly key: KeptApiKey | undefined;
  readonly asked: number;
}

/** Caches `store.find`. Concurrent lookups of the same id share one query. Throws the errors of the store. */
export function cachedKeys(
  store: Pick<ApiKeyStore, "find">,
  now: () => number = Date.now,
): ApiKeyStore["find"] {
  // Uses two caches, so invented ids cannot evict ids in use.
  const found = new LRUCache<string, KeyLookup>(atMost(MAX_FOUND));
  const missing = new LRUCache<string, KeyLookup>(atMost(MAX_MISSING));
  const asking = new Map<string, Promise<KeptApiKey | undefined>>();

  return async (id) => {
    const known = found.get(id) ?? missing.get(id);
    if (known && isFresh(known)) return known.key;
    const asked = asking.get(id) ?? ask(id).finally(() => asking.delete(id));
    asking.set(id, asked);
    return asked;
  };

  async function ask(id: string): Promise<KeptApiKey | undefined> {
    // A record's age counts from the start of its query.
    const asked = now();
    const key = await store.find(id);
    found.delete(id);
    missing.delete(id);
    (key ? found : missing).set(id, { key, asked });
    return key;
  }

  function isFresh({ asked }: KeyLookup): boolean {
    const age = now() - asked;
    // Setting the clock back must not extend a record's lifetime.
    return age >= 0 && age < FRESH_MS;
  }
}
