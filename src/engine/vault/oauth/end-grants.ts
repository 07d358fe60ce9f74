// Ends grants that the vault does not keep: revokes their tokens and, when a person deletes an account, forgets the
// consents that they gave to it before.

import { change, type Document, type Documents } from "../../../agent/core/documents.ts";
import type { Cipher } from "../cipher.ts";
import { type ConnectionSpec, type Keeper, splitSpec } from "../credential.ts";
import type { Issuer } from "../token-endpoint.ts";
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

export async function revokeGrant(
  issuer: Issuer,
  spec: ConnectionSpec,
  signal: AbortSignal = new AbortController().signal,
): Promise<void> {
  const { secrets, rest } = splitSpec(spec);
  if (rest.refresh) await issuer.revoke(rest.refresh, secrets, signal);
}

/** A consent whose tokens are possibly not in the vault. */
export interface EndedConsent {
  readonly id: string;
  readonly sealed: string;
}

/**
 * Ends the consents to an account from which a browser has already returned: no process stores their tokens any more.
 * Requests with a grant are kept without it until the claim of a process that may be storing it has ended.
 */
export async function endConsents(
  documents: Documents,
  keeper: Keeper,
  server: string,
): Promise<EndedConsent[]> {
  const store = createFlowStore(documents);
  const keys = (await store.list(keeper)).flatMap((each) => (isConsentTo(server, each) ? [each.id] : []));
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
  for (const { flow } of ended) if (flow) await store.displace(flow.state);
  return ended.flatMap(({ id, grant }) =>
    grant?.sealed === undefined ? [] : [{ id, sealed: grant.sealed }],
  );
}

/** Throws an `UnreadableSecret`. */
export async function revokeEnded(
  { cipher, issuer }: { readonly cipher: Pick<Cipher, "open">; readonly issuer: Issuer },
  keeper: Keeper,
  { id, sealed }: EndedConsent,
  signal: AbortSignal,
): Promise<void> {
  await revokeGrant(issuer, specIn(await cipher.open(sealed, contextOf(keeper, id, "grant"))), signal);
}

const isConsentTo = (name: string, { server, flow, grant }: ConnectRequest) =>
  server === name && (grant !== undefined || flow?.isUsed === true);

/** Without a grant, a person can use the address again. */
function endedWrite({ flow: _, grant, ...request }: ConnectRequest, found: Document, now: number) {
  return grant
    ? writeOf({ ...request, expires_at: now }, found, now + LEASE_MS)
    : writeOf(request, found, request.expires_at);
}
