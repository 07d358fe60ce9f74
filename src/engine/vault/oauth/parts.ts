// The services of the authorization flow, and the request behind an address.

import type { Documents } from "../../../agent/core/documents.ts";
import { AppError } from "../../../agent/core/errors.ts";
import type { Owners } from "../../../agent/core/owners.ts";
import type { HostList } from "../../../lib/hosts.ts";
import type { Logger } from "../../../lib/logger.ts";
import type { PublicFetch } from "../../../lib/ssrf-safe-fetch/index.ts";
import { timingSafeEqualText } from "../../../lib/text.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { Runs } from "../../runs/executor.ts";
import type { Keeper } from "../credential.ts";
import type { Vault } from "../index.ts";
import type { Issuer } from "../token-endpoint.ts";
import type { ClientIds } from "./client-id.ts";
import type { AccountServer } from "./discovery.ts";
import { digestOf, type FlowStore, type FoundRequest } from "./flow-store.ts";
import type { FlowRequests } from "./requests.ts";

/** Time limit for starting a flow, in milliseconds. */
export const BEGIN_MS = 30_000;

export interface OAuthOptions {
  readonly documents: Documents;
  readonly owners: Owners;
  readonly vault: Pick<
    Vault,
    "put" | "get" | "unknownClient" | "endRequest" | "withdraw" | "cipher" | "revoke"
  >;
  readonly runs: Runs;
  readonly logger: Logger;
  /** Private addresses that authorization servers can have. */
  readonly allow: HostList;
  /** Used for requests to the token endpoint. */
  readonly fetch: PublicFetch;
  /** Returns an MCP server whose accounts are connected through OAuth. */
  serverOf(name: string): AccountServer | undefined;
  /** All of them. */
  servers(): readonly AccountServer[];
  /** Returns the public URL of this server, or undefined if it is unknown. */
  base(): string | undefined;
  /** Called for each connected account. Must return at once and not throw. */
  onConnected(request: ShownRequest): void;
}

/** The services of one flow. */
export interface FlowParts extends OAuthOptions {
  readonly store: FlowStore;
  readonly clients: ClientIds;
  readonly issuer: Issuer;
  requests(server: AccountServer, signal: AbortSignal): FlowRequests;
}

/** The part of a request that a person sees before and after giving consent. */
export interface ShownRequest {
  readonly keeper: Keeper;
  /** The user who made the request. */
  readonly by: Owner;
  readonly server: string;
}

export const shownOf = ({ keeper, request }: FoundRequest): ShownRequest => ({
  keeper,
  by: { tenant: request.by_tenant ?? keeper.tenant, user: request.by },
  server: request.server,
});

/** The refusals that a person reads in their own language. */
export const REFUSALS = {
  gone: "This address was already used or has expired. Ask for a new one.",
  otherBrowser:
    "The account was not connected, because another browser started it. Open the Skein address again in this browser.",
  otherIssuer: "The account was not connected, because the answer did not come from the expected server.",
  declined: "The account was not connected, because you declined. You can try again.",
  refused: "The account was not connected, because its authorization server refused the request.",
  notExchanged:
    "The account was not connected, because its authorization server did not issue tokens for it. Try again.",
  notStored: "The account was not connected, because its tokens have a form that cannot be stored.",
} as const;

/** `reason` is only in English. It tells admins more. */
export const refusedBecause = (refusal: string, reason: string) =>
  new AppError("unavailable", refusal, { details: { reason } });

export const gone = () => new AppError("not_found", REFUSALS.gone);

/** Throws `not_found`. */
export async function openRequest(store: FlowStore, key: string): Promise<FoundRequest> {
  const found = await store.at(key);
  const isOpen = found && found.request.expires_at > found.now && !found.request.grant;
  if (!isOpen || !timingSafeEqualText(found.request.key, digestOf(key))) throw gone();
  return found;
}

export function baseOf({ base }: Pick<OAuthOptions, "base">): string {
  const known = base();
  if (known !== undefined) return known;
  throw new AppError(
    "invalid_request",
    "This server has no public address for browsers. Ask the operator to set `public_url` (PUBLIC_URL).",
  );
}
