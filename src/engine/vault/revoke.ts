// Revokes tokens that the vault does not keep, and logs why when an issuer may still accept them.

import { orAborted } from "../../lib/async.ts";
import type { Logger } from "../../lib/logger.ts";
import { type ConnectionSpec, type Keeper, type Secrets, splitSpec } from "./credential.ts";
import type { Issuer, Refresh } from "./token-endpoint.ts";

/** The maximum time for revoking the tokens of an account, in milliseconds. */
const REVOKING_MS = 30_000;

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
  /** Waits for the revocations in progress. */
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
      // A deletion in progress can start further ones.
      while (active.size > 0) await Promise.all(active);
    },
  };
}

function revokeAt(issuer: Issuer, logger: Logger): Revoke {
  return async (keeper, connection, tokens) => {
    const warn = (cause: object) =>
      logger.warn({ ...keeper, connection, ...cause }, "could not revoke the tokens of an account");
    const limit = AbortSignal.timeout(REVOKING_MS);
    try {
      const { refresh, secrets } = await orAborted(Promise.resolve(tokens), limit);
      const url = refresh?.revocation_endpoint;
      if (!refresh || url === undefined) return false;
      const granted = { refresh, secrets: await orAborted(secrets(), limit) };
      const reason = await issuer.revoke(url, granted, limit);
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
