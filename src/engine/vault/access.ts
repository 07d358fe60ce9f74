// Returns the current secret of a connection. An access token that is about to expire is renewed first, by one process
// at a time. Issuers accept a refresh token only once, and using it a second time may end the grant.

import { setTimeout as sleep } from "node:timers/promises";
import { orAborted } from "../../lib/async.ts";
import { backoff } from "../../lib/backoff.ts";
import type { Logger } from "../../lib/logger.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { randomId } from "../../lib/random-id.ts";
import type { ConnectionStore } from "./connection-store.ts";
import { type Keeper, type KeptConnection, type Secrets, tokenTimes } from "./credential.ts";
import type { Revoke } from "./revoke.ts";
import { ISSUER_MS, type Issuer, type NewTokens, type Renewal } from "./token-endpoint.ts";

export type Access =
  | {
      readonly state: "open";
      readonly connection: KeptConnection;
      readonly value: string;
      /** Pass it as `refused` if the receiver refuses the value. */
      readonly generation: string;
    }
  /** The connection does not exist. */
  | { readonly state: "absent" }
  /** The account must be connected again. `reason` completes "the connection ended, because …". */
  | { readonly state: "ended"; readonly reason: string }
  /** The issuer is currently unavailable. `reason` completes "the token could not be renewed: …". */
  | { readonly state: "failed"; readonly reason: string };

export interface AccessOptions {
  /** The generation of a value that a receiver refused. That value is renewed even if it has not expired. */
  readonly refused?: string | undefined;
  readonly signal: AbortSignal;
}

export interface Accesses {
  /** Throws the reason of `signal`, or an `UnreadableSecret`. */
  access(keeper: Keeper, id: string, options: AccessOptions): Promise<Access>;
  /** Waits for the renewals in progress, because a renewed token that is not stored is lost. */
  close(): Promise<void>;
}

/** The maximum time to store a renewed token, in milliseconds. */
const STORING_MS = 30_000;
/**
 * How long a renewal prevents other renewals of the same token, in milliseconds. This is longer than a renewal takes,
 * even if the store is temporarily unavailable.
 */
const LEASE_MS = ISSUER_MS + STORING_MS + 15_000;
/** How often a process checks whether another one has renewed the token, in milliseconds. */
const WAIT_MS = 150;

/** How long to wait before calling an issuer again after it failed, in milliseconds. */
const REST_MS = 2_000;

interface AccessServices {
  readonly store: ConnectionStore;
  readonly issuer: Issuer;
  readonly revoke: Revoke;
  readonly logger: Logger;
}

/** The caller must close it. */
export function createAccesses(services: AccessServices): Accesses {
  const { store } = services;
  /** The renewals of this process, by connection. */
  const active = new Map<string, Promise<void>>();

  const renewOnce = (keeper: Keeper, kept: KeptConnection): Promise<void> => {
    const key = JSON.stringify([keeper.tenant, keeper.user, kept.id]);
    const renewing = active.get(key) ?? renew(services, keeper, kept).finally(() => active.delete(key));
    active.set(key, renewing);
    return renewing;
  };

  return {
    async access(keeper, id, { refused, signal }) {
      for (;;) {
        signal.throwIfAborted();
        const { kept, now } = await store.read(keeper, id);
        const move = nextMove(kept, refused, now);
        if (move === "renew" && kept) await orAborted(renewOnce(keeper, kept), signal);
        else if (move === "wait") await sleep(WAIT_MS, undefined, { signal });
        else if (move === "open" && kept) return open(store, keeper, kept);
        else if (typeof move === "object") return move;
      }
    },
    async close() {
      await Promise.allSettled(active.values());
    },
  };
}

/** The next step of the caller, or the caller's result. */
type Move = "open" | "renew" | "wait" | Exclude<Access, { readonly state: "open" }>;

export function nextMove(kept: KeptConnection | undefined, refused: string | undefined, now: number): Move {
  if (!kept) return { state: "absent" };
  if (kept.ended) return { state: "ended", reason: kept.ended.reason };
  const { expires_at, renew_at = expires_at, refresh, renewal } = kept;
  const isOver = (time: string | undefined) => time !== undefined && Date.parse(time) <= now;
  const isRefused = refused === kept.generation;
  const isUsable = !isRefused && !isOver(expires_at);
  if (isUsable && !isOver(renew_at)) return "open";
  if (!refresh) {
    if (isUsable) return "open";
    return { state: "ended", reason: isRefused ? "its token was refused" : "its access token has expired" };
  }
  if (!renewal || renewal.until <= now) return "renew";
  if (isUsable) return "open";
  return renewal.failure === undefined ? "wait" : { state: "failed", reason: renewal.failure };
}

async function open(store: ConnectionStore, keeper: Keeper, kept: KeptConnection): Promise<Access> {
  const { value } = await store.secretsOf(keeper, kept);
  return { state: "open", connection: kept, value, generation: kept.generation };
}

/**
 * Renews the access token, unless another process is already renewing it. The request to the issuer ignores the
 * callers' signals, because an answered request has used up the previous refresh token.
 */
async function renew(
  { store, issuer, revoke, logger }: AccessServices,
  keeper: Keeper,
  stale: KeptConnection,
) {
  const id = randomId();
  const claimed = await store.update(keeper, stale.id, (before, now) =>
    before.generation !== stale.generation || (before.renewal && before.renewal.until > now)
      ? undefined
      : { ...before, renewal: { id, until: now + LEASE_MS } },
  );
  if (claimed?.renewal?.id !== id || !claimed.refresh) return;
  const secrets = await store.secretsOf(keeper, claimed);
  const renewal = await issuer.renew(claimed.refresh, secrets, new AbortController().signal);
  if (renewal.outcome !== "renewed")
    logger.warn(
      { tenant: keeper.tenant, user: keeper.user, connection: stale.id, reason: renewal.reason },
      "could not renew an access token",
    );
  const next = renewal.outcome === "renewed" ? nextSecrets(secrets, renewal.tokens) : undefined;
  let sealed: string | undefined;
  const generation = randomId();
  const written = await withPatience(async () => {
    if (next) sealed ??= await store.seal(keeper, stale.id, next);
    return store.update(keeper, stale.id, (before, now) => {
      // The previous attempt was stored, but its answer was lost.
      if (before.generation === generation) return before;
      return before.renewal?.id === id ? renewedOf(before, { renewal, sealed, generation }, now) : undefined;
    });
  });
  // The user has replaced or deleted the connection in the meantime, so these tokens will not be used.
  if (!written && next)
    await revoke(keeper, stale.id, { refresh: claimed.refresh, secrets: async () => next });
}

/** An issuer that does not rotate refresh tokens returns no new one. */
const nextSecrets = (before: Secrets, { access_token, refresh_token }: NewTokens): Secrets => ({
  ...before,
  value: access_token,
  ...omitUndefined({ refresh_token }),
});

interface RenewalResult {
  readonly renewal: Renewal;
  readonly sealed: string | undefined;
  readonly generation: string;
}

function renewedOf(
  { renewal: lease, ...before }: KeptConnection,
  { renewal, sealed = before.sealed, generation }: RenewalResult,
  now: number,
): KeptConnection {
  const at = new Date(now).toISOString();
  if (renewal.outcome === "refused") return { ...before, ended: { at, reason: renewal.reason } };
  if (renewal.outcome === "failed")
    return { ...before, renewal: { id: lease?.id ?? "", until: now + REST_MS, failure: renewal.reason } };
  const { expires_in } = renewal.tokens;
  const { expires_at: _, renew_at: __, ...lasting } = before;
  const times = expires_in === undefined ? {} : tokenTimes(now + expires_in * 1000, now);
  return { ...lasting, ...times, sealed, generation, updated_at: at };
}

/**
 * Retries while the store is unavailable, because the tokens cannot be received a second time. Throws the last error.
 */
export async function withPatience<T>(write: () => Promise<T>): Promise<T> {
  const end = performance.now() + STORING_MS;
  for (let attempt = 0; ; attempt++) {
    try {
      return await write();
    } catch (error) {
      const pause = backoff(attempt, { base: 100, cap: 2_000 });
      if (performance.now() + pause > end) throw error;
      await sleep(pause);
    }
  }
}
