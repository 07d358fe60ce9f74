// Completes a request: stores its tokens in the vault, continues the runs that wait for them, and deletes the request.
// Any process can repeat each step.

import { type ClaimedDocument, finish, renew } from "../../../agent/core/document-claims.ts";
import { type AppError, hasCode } from "../../../agent/core/errors.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { withPatience } from "../access.ts";
import type { Keeper } from "../credential.ts";
import { revocableIn } from "../revoke.ts";
import { specIn } from "./end-grants.ts";
import { type ConnectRequest, contextOf, LEASE_MS, requestCollection, requestIn } from "./flow-store.ts";
import { type FlowParts, gone, shownOf } from "./parts.ts";
import { answerWaiting } from "./waiting-runs.ts";

/**
 * The pause before waiting runs are retried, in milliseconds. The first attempt may have failed because the user had
 * too many runs.
 */
const AGAIN_MS = 2_000;
/** How long waiting runs are retried, in milliseconds. */
const TRYING_MS = 3_600_000;
/** The maximum number of a tenant's users whose runs are checked. */
const MAX_USERS = 1_000;

/**
 * Performs the next steps of a request: stores the tokens, continues the runs that wait for them, and deletes the
 * request. Returns the reason if the tokens could not be stored. Throws if the steps must be retried.
 */
export async function complete(parts: FlowParts, claimed: ClaimedDocument): Promise<AppError | undefined> {
  const { documents, store, vault, logger } = parts;
  const { tenant, user } = claimed.collection;
  const keeper: Keeper = user === undefined ? { tenant } : { tenant, user };
  const request = requestIn(claimed.body);
  const end = async () => {
    await store.unplace(request);
    await finish(documents, claimed, { body: undefined });
  };
  if (!request.grant) {
    // The account may have been deleted, and then stored by a process that was killed.
    await vault.withdraw(keeper, request.server, request.id);
    await end();
    await store.sweep();
    return undefined;
  }
  const stored = await storeGrant(parts, keeper, claimed);
  if (stored.outcome === "refused") {
    await end();
    return stored.error;
  }
  if (stored.outcome === "deleted") return gone();
  try {
    await resumeAll(parts, keeper, request);
  } catch (err) {
    logger.warn(
      { tenant, server: request.server, err },
      "could not continue the runs that waited for an account",
    );
    const { claimed: kept } = stored;
    if (claimed.now - request.grant.at < TRYING_MS) {
      await renew(documents, kept, { body: kept.body, leaseMs: AGAIN_MS });
      return undefined;
    }
  }
  await vault.endRequest(keeper, request.server, request.id);
  await store.unplace(request);
  await finish(documents, stored.claimed, { body: undefined });
  return undefined;
}

type StoreOutcome =
  | { readonly outcome: "stored"; readonly claimed: ClaimedDocument }
  | { readonly outcome: "refused"; readonly error: AppError }
  /** The account or its user was deleted in the meantime. */
  | { readonly outcome: "deleted" };

/** Stores the tokens in the vault once, so an older token cannot replace a renewed one. */
async function storeGrant(parts: FlowParts, keeper: Keeper, claimed: ClaimedDocument): Promise<StoreOutcome> {
  const { documents, vault } = parts;
  const request = requestIn(claimed.body);
  const { id, server, grant } = request;
  if (grant?.sealed === undefined) return { outcome: "stored", claimed };
  const spec = specIn(await vault.cipher.open(grant.sealed, contextOf(keeper, id, "grant")));
  try {
    const { isLate } = await vault.put(keeper, server, spec, { request: { id, at: grant.at } });
    if (isLate) void parts.vault.revoke(keeper, server, revocableIn(spec));
  } catch (error) {
    if (!hasCode(error, "limit_exceeded")) throw error;
    void parts.vault.revoke(keeper, server, revocableIn(spec));
    return { outcome: "refused", error };
  }
  const body = JSON.stringify({ ...request, grant: { at: grant.at } } satisfies ConnectRequest);
  const renewed = await renew(documents, claimed, { body, leaseMs: LEASE_MS });
  if (renewed) {
    parts.onConnected(shownOf({ keeper, request }));
    return { outcome: "stored", claimed: renewed };
  }
  const [still] = (await documents.read(requestCollection(keeper), [id])).found;
  // Another process has claimed the request.
  if (still && requestIn(still.body).grant) return { outcome: "stored", claimed };
  // Another process has finished it, or the account or its user was deleted.
  const isLeft = await withPatience(() => vault.withdraw(keeper, server, id));
  return isLeft ? { outcome: "stored", claimed } : { outcome: "deleted" };
}

/**
 * Continues the waiting runs of the user or, for a tenant's account, of all the tenant's users. Throws only after it
 * has tried every user.
 */
async function resumeAll(
  { runs, owners }: FlowParts,
  keeper: Keeper,
  request: ConnectRequest,
): Promise<void> {
  const { tenant, user } = keeper;
  if (user !== undefined) return answerWaiting(runs, { tenant, user }, request.server, request.id);
  const failures: unknown[] = [];
  let after: Owner | undefined;
  for (let read = 0; read < MAX_USERS; ) {
    const page = await owners.list({ limit: 50, tenant, after });
    for (const owner of page) {
      const answering = answerWaiting(runs, owner, request.server, request.id);
      await answering.catch((error: unknown) => failures.push(error));
    }
    after = page.at(-1);
    read += page.length;
    if (page.length < 50) break;
  }
  // A user who has reached a limit does not hold up the others.
  if (failures.length > 0) throw failures[0];
}
