// Deletes a connection for good: tokens of earlier consents do not stay in the vault, and all tokens are revoked.

import type { Documents } from "../../agent/core/documents.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Cipher } from "./cipher.ts";
import type { ConnectionStore, Precondition } from "./connection-store.ts";
import { type Keeper, type KeptConnection, noConnection } from "./credential.ts";
import { endConsents, givenConsents, revocableGrant } from "./oauth/end-grants.ts";
import type { Revoke } from "./revoke.ts";
import type { Uses } from "./uses.ts";

export interface Deletion {
  /**
   * Deletes a connection, then ends the consents that a person gave to it before, and revokes all its tokens. Also ends
   * them if there is no connection yet. `isRevoked` is false unless the issuer confirmed every revocation, and
   * if tokens are still to arrive: they are revoked then. Throws `not_found` and the errors of `precondition`.
   */
  delete(
    keeper: Keeper,
    id: string,
    options: {
      readonly precondition?: Precondition;
      /** The user who deletes it. */
      readonly by: Owner;
    },
  ): Promise<{ readonly isRevoked: boolean }>;
}

export interface DeletionParts {
  readonly documents: Documents;
  readonly store: ConnectionStore;
  readonly cipher: Cipher;
  readonly uses: Uses;
  readonly revoke: Revoke;
  /** Called if a deletion ended consents, but found no connection. Must return at once and not throw. */
  onConsentsEnded(keeper: Keeper, id: string, by: Owner): void;
}

export function deletionFrom({
  documents,
  store,
  cipher,
  uses,
  revoke,
  onConsentsEnded,
}: DeletionParts): Deletion["delete"] {
  const revokeKept = (keeper: Keeper, kept: KeptConnection) =>
    revoke(keeper, kept.id, revocableIn(store, keeper, kept));
  return async (keeper, id, { precondition, by }) => {
    // A process can finish one of these between the next two steps.
    const given = await givenConsents(documents, keeper, id);
    const deleted = await store.delete(keeper, id, precondition);
    const revoking = deleted ? [revokeKept(keeper, deleted)] : [];
    const ended = await endConsents(documents, keeper, id);
    for (const { id: request, sealed } of ended)
      if (sealed !== undefined)
        revoking.push(revoke(keeper, id, revocableGrant(cipher, keeper, { id: request, sealed })));
    const requests = new Set([...given, ...ended].map((each) => each.id));
    // A process may have stored the tokens of one of them after the deletion.
    const late = requests.size > 0 && (await store.withdraw(keeper, id, (each) => requests.has(each.id)));
    if (late) revoking.push(revokeKept(keeper, late));
    const revoked = await Promise.all(revoking);
    if (deleted || late) {
      await uses.forget(keeper, id);
      const isAwaited = ended.some(({ isExchanging }) => isExchanging) || [deleted, late].some(isRenewing);
      return { isRevoked: revoked.every((each) => each) && !isAwaited };
    }
    if (ended.length > 0) onConsentsEnded(keeper, id, by);
    throw noConnection(id);
  };
}

/** A process that is renewing the tokens revokes the new ones itself. */
const isRenewing = (kept: KeptConnection | undefined | false) =>
  kept ? kept.renewal !== undefined && kept.renewal.failure === undefined : false;

export const revocableIn = (store: ConnectionStore, keeper: Keeper, kept: KeptConnection) => ({
  refresh: kept.refresh,
  secrets: () => store.secretsOf(keeper, kept),
});
