// Checks the authorization server's answer, exchanges the code in it for tokens once, and keeps the tokens until the
// vault has stored them.

import type { ClaimedDocument } from "../../../agent/core/document-claims.ts";
import { AppError } from "../../../agent/core/errors.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { timingSafeEqualText } from "../../../lib/text.ts";
import { withPatience } from "../access.ts";
import { ConnectionSpec, type Keeper } from "../credential.ts";
import { revocableIn } from "../revoke.ts";
import { isClientUnknown, type NewTokens } from "../token-endpoint.ts";
import { redirectUri } from "./client-id.ts";
import { contextOf, digestOf, type Flow, type FlowSecrets, requestCollection } from "./flow-store.ts";
import { type FlowParts, gone, REFUSALS, refusedBecause } from "./parts.ts";

/** The parameters of the callback request, and the browser's cookie. */
export interface Consent {
  readonly state: string;
  readonly browser: string;
  readonly code?: string | undefined;
  readonly iss?: string | undefined;
  readonly error?: string | undefined;
}

/** Returns the request with its tokens, claimed for `leaseMs`. Throws an `AppError` with a message for the person. */
export async function keepGrant(
  parts: FlowParts,
  consent: Consent,
  leaseMs: number,
): Promise<{ readonly keeper: Keeper; readonly claimed: ClaimedDocument }> {
  const { keeper, id, flow, name, url } = await takeFlow(parts, consent);
  const tokens = await exchanged(parts, { keeper, id, flow }, consent);
  const { client_secret } = await secretsOf(parts, { keeper, id, flow });
  const spec = specOf(url, flow, tokens, client_secret);
  const sealed = await parts.vault.cipher.seal(JSON.stringify(spec), contextOf(keeper, id, "grant"));
  const written = await withPatience(() =>
    parts.store.update(
      keeper,
      id,
      // During the exchange, a person may have returned with another account, or deleted this one.
      (before, now) =>
        before.grant || before.flow?.state !== flow.state
          ? undefined
          : { ...before, grant: { at: now, sealed } },
      leaseMs,
    ),
  );
  if (!written) {
    await parts.vault.revoke(keeper, name, revocableIn(spec));
    throw gone();
  }
  const { request, version, now } = written;
  const body = JSON.stringify(request);
  return { keeper, claimed: { collection: requestCollection(keeper), key: id, body, version, now } };
}

interface TakenFlow {
  readonly keeper: Keeper;
  readonly id: string;
  readonly flow: Flow;
}

interface ReturnedFlow extends TakenFlow {
  /** The name and the URL of the MCP server. */
  readonly name: string;
  readonly url: string;
}

/** Accepts a state once, and only from the browser that it was created for. */
async function takeFlow(
  { store, serverOf }: FlowParts,
  { state, browser, iss, code, error }: Consent,
): Promise<ReturnedFlow> {
  const found = await store.at(state);
  const flow = found?.request.flow;
  if (!found || !flow || !timingSafeEqualText(flow.state, digestOf(state))) throw gone();
  if (!timingSafeEqualText(flow.browser, digestOf(browser))) throw otherBrowser();
  const { keeper, request } = found;
  const taken = await store.update(keeper, request.id, (before, now) => {
    const isOpen = before.flow?.state === flow.state && !before.flow.isUsed && before.flow.until > now;
    return isOpen && !before.grant ? { ...before, flow: { ...flow, isUsed: true } } : undefined;
  });
  if (!taken) throw gone();
  const isFromIssuer = iss === undefined ? !flow.isIssRequired : iss === flow.issuer;
  if (!isFromIssuer) throw otherIssuer();
  if (error !== undefined || code === undefined) throw refused(error);
  const server = serverOf(request.server);
  if (!server) throw gone();
  return { keeper, id: request.id, flow, name: request.server, url: server.url };
}

async function secretsOf({ vault }: FlowParts, { keeper, id, flow }: TakenFlow): Promise<FlowSecrets> {
  // Not validated, because only `beginFlow` writes it.
  return JSON.parse(await vault.cipher.open(flow.sealed, contextOf(keeper, id, "flow"))) as FlowSecrets;
}

/** Not aborted if the browser disconnects, because the code can only be used once. */
async function exchanged(parts: FlowParts, taken: TakenFlow, { code = "" }: Consent): Promise<NewTokens> {
  const { token_endpoint, client_id, resource, base, issuer } = taken.flow;
  const { verifier, client_secret } = await secretsOf(parts, taken);
  const client = { client_id, token_endpoint_auth: { type: taken.flow.auth } };
  const exchange = { ...client, token_endpoint, resource, code, verifier, redirect_uri: redirectUri(base) };
  const renewal = await parts.issuer.exchange(
    exchange,
    omitUndefined({ client_secret }),
    new AbortController().signal,
  );
  if (renewal.outcome === "renewed") return renewal.tokens;
  if (isClientUnknown(renewal.reason)) await parts.clients.forget(issuer, base, client_id);
  parts.logger.warn(
    { ...taken.keeper, reason: renewal.reason },
    "could not exchange the code from a consent",
  );
  throw refusedBecause(REFUSALS.notExchanged, renewal.reason);
}

function specOf(
  mcp_server_url: string,
  flow: Flow,
  { access_token, refresh_token, expires_in, scope: granted }: NewTokens,
  client_secret: string | undefined,
): Extract<ConnectionSpec, { type: "mcp_oauth" }> {
  const { client_id, auth, token_endpoint, revocation_endpoint, resource, scope: asked } = flow;
  const token_endpoint_auth =
    auth === "none" || client_secret === undefined
      ? { type: "none" as const }
      : { type: auth, client_secret };
  const scope = granted ?? asked;
  const refresh = refresh_token !== undefined && {
    ...{ client_id, refresh_token, token_endpoint, token_endpoint_auth, resource },
    ...omitUndefined({ revocation_endpoint, scope }),
  };
  const expires_at =
    expires_in === undefined ? undefined : new Date(Date.now() + expires_in * 1000).toISOString();
  const checked = ConnectionSpec.safeParse({
    ...{ type: "mcp_oauth", mcp_server_url, access_token },
    ...omitUndefined({ expires_at }),
    ...(refresh ? { refresh } : {}),
  });
  if (checked.success && checked.data.type === "mcp_oauth") return checked.data;
  throw new AppError("unavailable", REFUSALS.notStored);
}

const otherBrowser = () => new AppError("forbidden", REFUSALS.otherBrowser);

/** Contains no text from the answer, which may come from an attacker. */
const otherIssuer = () => new AppError("forbidden", REFUSALS.otherIssuer);

function refused(error: string | undefined): AppError {
  if (error === "access_denied") return new AppError("forbidden", REFUSALS.declined);
  const isCode = error !== undefined && /^[a-z_]{1,40}$/.test(error);
  return isCode
    ? refusedBecause(REFUSALS.refused, `it answered \`${error}\``)
    : new AppError("unavailable", REFUSALS.refused);
}
