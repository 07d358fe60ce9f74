// Detects when the credentials of a request end after the server has checked them. Event streams, long responses and
// runs can outlast that check.

import { AppError, hasCode } from "../../agent/core/errors.ts";
import type { Logger } from "../../lib/logger.ts";
import { isOver } from "./api-key.ts";
import type { ApiKeyStore } from "./api-keys.ts";
import type { Principal } from "./principal.ts";

export type Credential = Pick<Principal, "api_key" | "expires_at">;

export interface Credentials {
  /**
   * Returns the reason why a credential has ended (`credentials_expired` or `credentials_revoked`), or undefined while
   * it is valid. Rethrows errors from the key store.
   */
  endOf(credential: Credential): Promise<AppError | undefined>;
  /** Like `endOf`, for work that a key starts without a request, such as a schedule's run. The reason names the key. */
  endOfKey(api_key: string): Promise<AppError | undefined>;
  /** Calls `onEnd` once, within five seconds of the end. Returns a function that stops the watch. */
  watch(credential: Credential, onEnd: (reason: AppError) => void): () => void;
}

/** With cached records, a key's end is detected at most one second after the cache drops its record. */
const CHECK_MS = 1_000;
/** The number of keys that are looked up at a time. */
const AT_ONCE = 32;

interface Watch {
  readonly expires_at: number | undefined;
  readonly onEnd: (reason: AppError) => void;
}

/**
 * Calls `findKey` once per key and check, regardless of how many requests watch the key. If `findKey` is not set, no
 * credential is an API key. While `findKey` fails, keys that were valid stay valid.
 */
export function createCredentials(
  findKey: ApiKeyStore["find"] | undefined,
  logger: Pick<Logger, "warn">,
  now: () => number = Date.now,
  checkMs = CHECK_MS,
): Credentials {
  /** The watches by API key id. Credentials of all other kinds are stored under undefined. */
  const watched = new Map<string | undefined, Set<Watch>>();
  let timer: NodeJS.Timeout | undefined;
  let isChecking = false;
  let isFailing = false;

  const endOf = (credential: Credential) => endNow(credential, findKey, now);

  async function check([api_key, watches]: [string | undefined, ReadonlySet<Watch>]): Promise<void> {
    const end = (reasonOf: (watch: Watch) => AppError | undefined) => {
      for (const watch of watches) {
        const reason = reasonOf(watch);
        if (!reason) continue;
        forget(api_key, watch);
        watch.onEnd(reason);
      }
    };
    end(({ expires_at }) => (hasExpired(expires_at, now()) ? expired() : undefined));
    const reason = await endOf({ api_key });
    if (reason) end(() => reason);
  }

  /** Never throws. */
  async function checkAll(): Promise<void> {
    if (isChecking) return;
    isChecking = true;
    try {
      const all = [...watched];
      while (all.length > 0) await Promise.all(all.splice(0, AT_ONCE).map(check));
      isFailing = false;
    } catch (err) {
      if (!isFailing) logger.warn({ err }, "could not look up the API keys of open streams and runs");
      isFailing = true;
    } finally {
      isChecking = false;
    }
  }

  function forget(api_key: string | undefined, watch: Watch): void {
    const watches = watched.get(api_key);
    if (!watches?.delete(watch) || watches.size > 0) return;
    watched.delete(api_key);
    if (watched.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  return {
    endOf,
    endOfKey: async (api_key) => naming(api_key, await endOf({ api_key })),
    watch({ api_key, expires_at }, onEnd) {
      if (api_key === undefined && expires_at === undefined) return () => {};
      const watch = { expires_at, onEnd };
      const watches = watched.get(api_key) ?? new Set();
      watched.set(api_key, watches.add(watch));
      timer ??= setInterval(() => void checkAll(), checkMs).unref();
      return () => forget(api_key, watch);
    },
  };
}

/** Returns the reason why the credential has ended, or undefined while it is valid. */
async function endNow(
  { api_key, expires_at }: Credential,
  findKey: ApiKeyStore["find"] | undefined,
  now: () => number,
): Promise<AppError | undefined> {
  if (hasExpired(expires_at, now())) return expired();
  if (api_key === undefined || !findKey) return undefined;
  const key = await findKey(api_key);
  if (!key || key.revoked_at !== undefined) return revoked();
  return isOver(key, now()) ? expired() : undefined;
}

/** Returns the same reason, with a message that names the key instead of a request. */
function naming(api_key: string, end: AppError | undefined): AppError | undefined {
  const how = hasCode(end, "credentials_revoked") ? "was revoked" : "has expired";
  return end && new AppError(end.code, `The API key \`${api_key}\` ${how}.`);
}

const hasExpired = (expires_at: number | undefined, time: number) =>
  expires_at !== undefined && !(time < expires_at);

const expired = () =>
  new AppError("credentials_expired", "The credentials of this request have expired. Send new ones.");
const revoked = () =>
  new AppError(
    "credentials_revoked",
    "The API key of this request was revoked. Ask the operator for a new one.",
  );

export const isRevoked = (over: AbortSignal) => hasCode(over.reason, "credentials_revoked");
