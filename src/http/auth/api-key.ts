// Who sends an API key is whom it was made for.

import { LRUCache } from "lru-cache";
import { timingSafeEqualText } from "../../lib/text.ts";
import { type ApiKey, type ApiKeyStore, type KeptApiKey, readApiKey } from "./api-keys.ts";
import { type Authenticate, bearerToken, onlyHeader, unauthorized } from "./credentials.ts";

const MISSING = "Send an API key: `Authorization: Bearer sk_…`, or `X-API-Key: sk_…`.";
/** One text for all: which of them it is, is nobody's business who has no key. */
const REFUSED = "The API key is not known, not valid any more, or not complete.";

/** A hash that no key has. */
const NO_HASH = "0".repeat(64);

/** A key that is revoked is refused a few seconds later at the latest, by every process. */
export function authenticateApiKey(store: ApiKeyStore, now: () => number = Date.now): Authenticate {
  const find = cachedKeys(store, now);

  return async (request) => {
    const [token, header] = [bearerToken(request), onlyHeader(request, "x-api-key")];
    if (token !== undefined && header !== undefined) throw unauthorized("Send one API key, not two.");
    const text = token ?? header;
    if (text === undefined) throw unauthorized(MISSING);
    const given = readApiKey(text);
    if (!given) throw unauthorized(REFUSED);
    const key = await find(given.id);
    // An id that nobody has takes the same way as a secret that does not fit.
    const fits = timingSafeEqualText(given.hash, key?.hash ?? NO_HASH);
    if (!key || !fits || isOver(key, now())) throw unauthorized(REFUSED);
    const { tenant, user, scopes } = key;
    return { tenant, user, scopes };
  };
}

function isOver({ revoked_at, expires_at }: ApiKey, time: number): boolean {
  // Written so that a time that cannot be read is over.
  return revoked_at !== undefined || (expires_at !== undefined && !(time < Date.parse(expires_at)));
}

// The records of API keys, asked for once in a few seconds instead of with every request.
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
