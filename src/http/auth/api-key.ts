// Who sends an API key is whom it was made for.

import { isSameText } from "../../lib/same-text.ts";
import { type ApiKey, type ApiKeyStore, readApiKey } from "./api-keys.ts";
import { cachedKeys } from "./cached-keys.ts";
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
    const fits = isSameText(given.hash, key?.hash ?? NO_HASH);
    if (!key || !fits || isOver(key, now())) throw unauthorized(REFUSED);
    const { tenant, user, scopes } = key;
    return { tenant, user, scopes };
  };
}

function isOver({ revoked_at, expires_at }: ApiKey, time: number): boolean {
  // Written so that a time that cannot be read is over.
  return revoked_at !== undefined || (expires_at !== undefined && !(time < Date.parse(expires_at)));
}
