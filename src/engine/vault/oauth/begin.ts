// Sends a browser to the authorization server and stores what the server needs when the browser returns.

import { hash } from "node:crypto";
import { AppError } from "../../../agent/core/errors.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import type { Keeper } from "../credential.ts";
import type { OAuthClient } from "./client-id.ts";
import { redirectUri } from "./client-id.ts";
import { type AccountServer, type DiscoveryResult, discover } from "./discovery.ts";
import {
  type ConnectRequest,
  contextOf,
  digestOf,
  type Flow,
  type FlowSecrets,
  type FlowStore,
  newSecret,
} from "./flow-store.ts";
import { BEGIN_MS, baseOf, type FlowParts, gone, openRequest } from "./parts.ts";

/** How long a person can take at the authorization server, in milliseconds. */
const FLOW_MS = 10 * 60_000;
/** How many times one address can lead to the authorization server. */
const MAX_BEGUN = 20;

/** Returns the URL at the authorization server. */
export async function beginFlow(
  parts: FlowParts,
  key: string,
  browser: string,
  signal: AbortSignal,
): Promise<string> {
  const { store, clients, vault } = parts;
  const { keeper, request } = await openRequest(store, key);
  const server = parts.serverOf(request.server);
  if (!server || request.begun >= MAX_BEGUN) throw gone();
  const base = baseOf(parts);
  const both = AbortSignal.any([signal, AbortSignal.timeout(BEGIN_MS)]);
  const found = await discover(server, parts.requests(server, both));
  // Its authorization page would refuse the client, and lead no browser back.
  const unknown = await vault.unknownClient(keeper, request.server);
  if (unknown !== undefined) await clients.forget(found.issuer.issuer, base, unknown);
  const client = await clients.clientFor(server, found.issuer, base, both);
  const [state, verifier] = [newSecret(), newSecret()];
  const secrets: FlowSecrets = { verifier, client_secret: client.client_secret };
  const sealed = await vault.cipher.seal(JSON.stringify(secrets), contextOf(keeper, request.id, "flow"));
  const scope = await scopeFor(parts, server, { found, request, keeper });
  const about = { ...aboutIssuer(found), base, client_id: client.client_id, auth: client.auth, sealed };
  const flow = { ...about, ...omitUndefined({ scope }), state: digestOf(state), browser: digestOf(browser) };
  await write(store, keeper, request.id, flow);
  return addressAt(found, { client, base, scope, state, verifier });
}

/** Only the most recent state of a request can be used to find the request. Throws `not_found`. */
async function write(store: FlowStore, keeper: Keeper, id: string, flow: Omit<Flow, "until">): Promise<void> {
  let replaced: string | undefined;
  await store.place(keeper, id, flow.state);
  const written = await store.update(keeper, id, (before, now) => {
    if (before.grant || before.expires_at <= now) return undefined;
    replaced = before.flow?.state;
    return { ...before, begun: before.begun + 1, flow: { ...flow, until: now + FLOW_MS } };
  });
  const useless = written ? replaced : flow.state;
  if (useless !== undefined) await store.displace(useless);
  if (!written) throw gone();
}

const aboutIssuer = ({ issuer, resource }: DiscoveryResult) => ({
  issuer: issuer.issuer,
  isIssRequired: issuer.authorization_response_iss_parameter_supported,
  token_endpoint: issuer.token_endpoint,
  ...omitUndefined({ revocation_endpoint: issuer.revocation_endpoint }),
  resource,
});

interface AuthorizationRequest {
  readonly client: OAuthClient;
  readonly base: string;
  readonly scope: string | undefined;
  readonly state: string;
  readonly verifier: string;
}

function addressAt(
  { issuer, resource }: DiscoveryResult,
  { client, base, scope, state, verifier }: AuthorizationRequest,
): string {
  const url = new URL(issuer.authorization_endpoint);
  const asked = {
    ...{ response_type: "code", client_id: client.client_id, redirect_uri: redirectUri(base) },
    ...{ state, resource, code_challenge_method: "S256" },
    code_challenge: hash("sha256", verifier, "base64url"),
    ...omitUndefined({ scope }),
    // OpenID Connect issues a refresh token only with this prompt.
    ...(scope?.split(" ").some((each) => each === "offline_access") ? { prompt: "consent" } : {}),
  };
  for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value);
  return url.href;
}

interface ScopeSources {
  readonly found: DiscoveryResult;
  readonly request: ConnectRequest;
  readonly keeper: Keeper;
}

/**
 * Returns the scopes from the server and the settings, along with the scopes that the account already has. A new grant
 * must not have fewer scopes.
 */
async function scopeFor(
  { vault }: FlowParts,
  server: AccountServer,
  { found, request, keeper }: ScopeSources,
): Promise<string | undefined> {
  const before = (await vault.get(keeper, server.name))?.connection.refresh?.scope?.split(" ") ?? [];
  const asked = [...found.scopes, ...server.oauth.scopes, ...request.scopes, ...before];
  const lasting = found.issuer.scopes_supported.some((each) => each === "offline_access");
  const all = [...new Set([...asked, ...(lasting ? ["offline_access"] : [])])].filter((each) => each !== "");
  if (all.length > MAX_SCOPES) throw new AppError("unavailable", "The MCP server requests too many scopes.");
  return all.length === 0 ? undefined : all.join(" ");
}

const MAX_SCOPES = 200;
