// Revokes tokens that the vault does not keep, and logs why when an issuer may still accept them.

import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../../lib/logger.ts";
import { type ConnectionSpec, type Keeper, type Secrets, splitSpec } from "./credential.ts";
import type { Issuer, Refresh } from "./token-endpoint.ts";

/** The maximum time for revoking the tokens of an account, in milliseconds. */
const REVOKING_MS = 30_000;
/** The maximum time for which a server that stops waits for revocations, in milliseconds. */
const CLOSING_MS = 2_000;

/** Tokens without `refresh` cannot be revoked. */
export interface Revocable {
  readonly refresh?: Refresh | undefined;
  /** Can throw an `UnreadableSecret`. */
  secrets(): Promise<Secrets>;
}

/**
 * Revokes tokens that were for the connection `id`. A client that disconnects does not stop this, because nothing else
 * can revoke the tokens later. Never throws. Returns true if the issuer confirmed it.
 */
export type Revoke = (keeper: Keeper, id: string, tokens: Revocable | Promise<Revocable>) => Promise<boolean>;

export interface Revocations {
  readonly revoke: Revoke;
  /** Waits up to `CLOSING_MS` for the revocations in progress, because runs must still be handed over afterwards. */
  close(): Promise<void>;
}

/** The caller must close it. */
export function createRevocations(issuer: Issuer, logger: Logger): Revocations {
  const active = new Set<Promise<boolean>>();
  const revokeNow = revokeAt(issuer, logger);
  return {
    revoke(...tokens) {
      const revoking = revokeNow(...tokens).finally(() => active.delete(revoking));
      active.add(revoking);
      return revoking;
    },
    async close() {
      const late = new AbortController();
      const limit = sleep(CLOSING_MS, undefined, { signal: late.signal }).catch(() => {});
      await Promise.race([Promise.all(active), limit]);
      late.abort();
    },
  };
}

function revokeAt(issuer: Issuer, logger: Logger): Revoke {
  return async (keeper, connection, tokens) => {
    const warn = (cause: object) =>
      logger.warn({ ...keeper, connection, ...cause }, "could not revoke the tokens of an account");
    try {
      const { refresh, secrets } = await tokens;
      const url = refresh?.revocation_endpoint;
      if (!refresh || url === undefined) return false;
      const granted = { refresh, secrets: await secrets() };
      const reason = await issuer.revoke(url, granted, AbortSignal.timeout(REVOKING_MS));
      if (reason !== undefined) warn({ reason });
      return reason === undefined;
    } catch (err) {
      warn({ err });
      return false;
    }
  };
}

export function revocableIn(spec: ConnectionSpec): Revocable {
  const { secrets, rest } = splitSpec(spec);
  return { refresh: rest.refresh, secrets: async () => secrets };
}
