// Ends the consents that a person gave to an account before they deleted it.

import { change, type Document, type Documents } from "../../../agent/core/documents.ts";
import type { Cipher } from "../cipher.ts";
import type { ConnectionSpec, Keeper } from "../credential.ts";
import { type Revocable, revocableIn } from "../revoke.ts";
import {
  type ConnectRequest,
  contextOf,
  createFlowStore,
  LEASE_MS,
  requestCollection,
  requestIn,
  writeOf,
} from "./flow-store.ts";

// Not validated, because only `keepGrant` writes it, after checking it.
export const specIn = (text: string) => JSON.parse(text) as ConnectionSpec;

/** A consent after which a process may still store tokens. */
export interface GivenConsent {
  readonly id: string;
  /** The encrypted tokens, unless they are in the vault or have not arrived. */
  readonly sealed: string | undefined;
  /** True if a process is still getting the tokens from the issuer. */
  readonly isExchanging: boolean;
}

/** Returns the consents to an account from which a browser has already returned. */
export async function givenConsents(
  documents: Documents,
  keeper: Keeper,
  server: string,
): Promise<GivenConsent[]> {
  const all = await createFlowStore(documents).list(keeper);
  return all.flatMap((each) => (isConsentTo(server, each) ? [consentOf(each)] : []));
}

/**
 * Ends the given consents to an account: a process that stores their tokens afterwards withdraws them. Requests with a grant are kept
 * without it until the claim of a process that may be storing it has ended.
 */
export async function endConsents(
  documents: Documents,
  keeper: Keeper,
  server: string,
): Promise<GivenConsent[]> {
  const keys = (await givenConsents(documents, keeper, server)).map(({ id }) => id);
  if (keys.length === 0) return [];
  const at = { collection: requestCollection(keeper), keys };
  const ended = await change(documents, at, ({ found, now }) => {
    const consents = found.flatMap((document) => {
      const request = document && requestIn(document.body);
      return request && isConsentTo(server, request) ? [{ document, request }] : [];
    });
    return {
      writes: consents.map(({ document, request }) => endedWrite(request, document, now)),
      result: consents.map(({ request }) => request),
    };
  });
  const store = createFlowStore(documents);
  for (const { flow } of ended) if (flow) await store.displace(flow.state);
  return ended.map(consentOf);
}

/** Returns true if a process still has to finish this request after storing its tokens. */
export async function isUnderWay(documents: Documents, keeper: Keeper, request: string): Promise<boolean> {
  const [found] = (await documents.read(requestCollection(keeper), [request])).found;
  return found !== undefined && requestIn(found.body).grant !== undefined;
}

const consentOf = ({ id, grant }: ConnectRequest): GivenConsent => ({
  id,
  sealed: grant?.sealed,
  isExchanging: grant === undefined,
});

/** Returns the tokens of a grant that is not in the vault. Throws an `UnreadableSecret`. */
export async function revocableGrant(
  cipher: Pick<Cipher, "open">,
  keeper: Keeper,
  { id, sealed }: { readonly id: string; readonly sealed: string },
): Promise<Revocable> {
  return revocableIn(specIn(await cipher.open(sealed, contextOf(keeper, id, "grant"))));
}

const isConsentTo = (name: string, { server, flow, grant }: ConnectRequest) =>
  server === name && (grant !== undefined || flow?.isUsed === true);

/** Without a grant, a person can use the address again. */
function endedWrite({ flow: _, grant, ...request }: ConnectRequest, found: Document, now: number) {
  return grant
    ? writeOf({ ...request, expires_at: now }, found, now + LEASE_MS)
    : writeOf(request, found, request.expires_at);
}
