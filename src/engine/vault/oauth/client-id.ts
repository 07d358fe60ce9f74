// The client id that the server uses at an authorization server. It is set by the operator, is the URL of the server's
// metadata document, or comes from a registration. All processes and tenants share a registration.

import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { change, type Documents, type ListedCollection, remove } from "../../../agent/core/documents.ts";
import { isLoopback } from "../../../lib/hosts.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { randomId } from "../../../lib/random-id.ts";
import type { Cipher } from "../cipher.ts";
import { type AccountServer, failed, type IssuerMetadata } from "./discovery.ts";
import { type FlowRequests, reasonOf } from "./requests.ts";

export interface OAuthClient {
  readonly client_id: string;
  readonly client_secret?: string | undefined;
  readonly auth: "none" | "client_secret_basic" | "client_secret_post";
}

/** URLs of this server. `base` is its public URL. */
export const redirectUri = (base: string) => `${base}/oauth/callback`;
const metadataUrl = (base: string) => `${base}/oauth/client-metadata.json`;

/** Returns the client id metadata document of this server. */
export const clientMetadata = (base: string) => ({
  client_id: metadataUrl(base),
  ...aboutThisServer(base),
  token_endpoint_auth_method: "none",
});

const aboutThisServer = (base: string) => ({
  client_name: "Skein",
  redirect_uris: [redirectUri(base)],
  grant_types: ["authorization_code", "refresh_token"],
  response_types: ["code"],
});

export interface ClientIds {
  /** Throws `unavailable`, or the reason of `signal`. */
  clientFor(
    server: AccountServer,
    issuer: IssuerMetadata,
    base: string,
    signal: AbortSignal,
  ): Promise<OAuthClient>;
  /** Forgets a client that the issuer no longer knows. The next flow registers again. */
  forget(issuer: string, base: string, client_id: string): Promise<void>;
}

const CLIENTS: ListedCollection = { kind: "oauth_clients" };
/** How long a registration prevents other registrations, in milliseconds. */
const LEASE_MS = 20_000;
/** How often a process checks whether another one has registered, in milliseconds. */
const WAIT_MS = 150;
/** A secret is not used in the last hour before it expires. */
const AHEAD_MS = 3_600_000;

interface KeptClient {
  readonly issuer: string;
  readonly client_id?: string;
  readonly auth?: OAuthClient["auth"];
  readonly sealed?: string;
  /** The time at which the client's secret expires, in milliseconds since 1970. */
  readonly expires_at?: number;
  /** The registration in progress, valid until a time by the store's clock. */
  readonly registering?: { readonly id: string; readonly until: number };
}

// Not validated, because only this file writes it.
const clientIn = (body: string) => JSON.parse(body) as KeptClient;
const keyOf = (issuer: string, base: string) => hash("sha256", JSON.stringify([issuer, base]), "base64url");
const contextOf = (key: string) => JSON.stringify(["oauth_clients", key]);

interface ClientServices {
  readonly documents: Documents;
  readonly cipher: Cipher;
  requests(server: AccountServer, signal: AbortSignal): FlowRequests;
}

export function createClientIds(services: ClientServices): ClientIds {
  const { documents } = services;
  return {
    async clientFor(server, issuer, base, signal) {
      const { client_id, client_secret } = server.oauth;
      if (client_id !== undefined) return { client_id, client_secret, auth: authOf(issuer, client_secret) };
      if (issuer.client_id_metadata_document_supported && base.startsWith("https:"))
        return { client_id: metadataUrl(base), auth: "none" };
      if (issuer.registration_endpoint === undefined)
        throw failed(
          server,
          "its authorization server does not register clients. The operator must set `auth.oauth.client_id` of the MCP server in agents.yaml",
        );
      return registered(services, { server, issuer, base, signal });
    },
    async forget(issuer, base, client_id) {
      const key = keyOf(issuer, base);
      const { found } = await documents.read(CLIENTS, [key]);
      if (found[0] && clientIn(found[0].body).client_id === client_id) await remove(documents, CLIENTS, key);
    },
  };
}

const authOf = (
  { token_endpoint_auth_methods_supported: methods }: IssuerMetadata,
  secret: string | undefined,
) =>
  secret === undefined
    ? "none"
    : methods.includes("client_secret_basic")
      ? "client_secret_basic"
      : "client_secret_post";

interface Registration {
  readonly server: AccountServer;
  readonly issuer: IssuerMetadata;
  readonly base: string;
  readonly signal: AbortSignal;
}

/** Returns the client of this deployment at an issuer. One process registers it while the others wait. */
async function registered(services: ClientServices, registration: Registration): Promise<OAuthClient> {
  const { documents, cipher } = services;
  const { issuer, base, signal } = registration;
  const key = keyOf(issuer.issuer, base);
  const at = { collection: CLIENTS, keys: [key] };
  const id = randomId();
  for (;;) {
    signal.throwIfAborted();
    const kept = await change(documents, at, ({ found: [found], now }) => {
      const before = found && clientIn(found.body);
      const isOver = before?.expires_at !== undefined && before.expires_at - AHEAD_MS < now;
      if (before?.client_id !== undefined && !isOver) return { result: before };
      if (before?.registering && before.registering.until > now) return { result: before };
      const next: KeptClient = { issuer: issuer.issuer, registering: { id, until: now + LEASE_MS } };
      return { writes: [{ key, seen: found?.version, body: JSON.stringify(next) }], result: next };
    });
    if (kept.client_id !== undefined && kept.auth !== undefined) {
      const client_secret =
        kept.sealed === undefined ? undefined : await cipher.open(kept.sealed, contextOf(key));
      return { client_id: kept.client_id, client_secret, auth: kept.auth };
    }
    if (kept.registering?.id !== id) await sleep(WAIT_MS, undefined, { signal });
    else return register(services, registration, { key, id });
  }
}

const Registered = z.object({
  client_id: z.string().min(1).max(2048),
  client_secret: z.string().min(1).max(16_384).optional(),
  client_secret_expires_at: z.number().min(0).optional().catch(undefined),
  token_endpoint_auth_method: z.string().optional(),
});

async function register(
  { documents, cipher, requests }: ClientServices,
  { server, issuer, base, signal }: Registration,
  lease: { readonly key: string; readonly id: string },
): Promise<OAuthClient> {
  const at = { collection: CLIENTS, keys: [lease.key] };
  const write = (body: KeptClient | undefined) =>
    change(documents, at, ({ found: [found] }) => {
      const isOurs = found && clientIn(found.body).registering?.id === lease.id;
      if (!isOurs) return { result: undefined };
      const next = body && JSON.stringify(body);
      return { writes: [{ key: lease.key, seen: found.version, body: next }], result: undefined };
    });
  try {
    const { expires_at, ...client } = await ask(server, issuer, base, requests(server, signal));
    const { client_id, client_secret, auth } = client;
    const sealed =
      client_secret === undefined ? undefined : await cipher.seal(client_secret, contextOf(lease.key));
    await write({ issuer: issuer.issuer, client_id, auth, ...omitUndefined({ sealed, expires_at }) });
    return client;
  } catch (error) {
    await write(undefined).catch(() => {});
    throw error;
  }
}

/** RFC 7591. */
async function ask(
  server: AccountServer,
  { registration_endpoint = "", token_endpoint_auth_methods_supported: methods }: IssuerMetadata,
  base: string,
  requests: FlowRequests,
): Promise<OAuthClient & { readonly expires_at?: number }> {
  const ours = (["client_secret_basic", "client_secret_post", "none"] as const).find((each) =>
    methods.includes(each),
  );
  if (ours === undefined)
    throw failed(server, "its authorization server offers no authentication method that Skein supports");
  const { hostname } = new URL(base);
  const body = JSON.stringify({
    ...aboutThisServer(base),
    token_endpoint_auth_method: ours,
    application_type: isLoopback(hostname.replace(/^\[|\]$/g, "")) ? "native" : "web",
  });
  const answer = await requests
    .send(registration_endpoint, { method: "POST", headers: { "content-type": "application/json" }, body })
    .catch((error: unknown) => {
      throw failed(server, `its authorization server could not be reached: ${reasonOf(error)}`, error);
    });
  const { success, data } = Registered.safeParse(answer.json);
  if (answer.status >= 300 || !success)
    throw failed(
      server,
      `its authorization server refused to register this server (${answer.status}). The operator must set \`auth.oauth.client_id\` in agents.yaml`,
    );
  const { client_id, client_secret, client_secret_expires_at: end = 0 } = data;
  const auth = client_secret === undefined ? "none" : (methodIn(data.token_endpoint_auth_method) ?? ours);
  if (auth === "none") return { client_id, auth };
  return { client_id, client_secret, auth, ...(end > 0 ? { expires_at: end * 1000 } : {}) };
}

const methodIn = (method: string | undefined) =>
  (["client_secret_basic", "client_secret_post", "none"] as const).find((each) => each === method);
